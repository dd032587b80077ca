"""`python -m ding.parallel.node MARK HOST start ...`: Ray's command `start`.

With a HOST of this machine alone, every server of Ray stays there too: by itself Ray would let
nobody join such a head, and would look for another address. MARK is how a guard knows the process.
"""

from __future__ import annotations

import sys
from typing import Any

from ding.parallel.cluster import LOOPBACK


def main(host: str, *words: str) -> Any:
    from ray._private import services
    from ray.scripts import scripts

    if host == LOOPBACK:
        services.get_node_ip_address = lambda address=None: LOOPBACK
    sys.argv = ["ray", *words]
    ray: Any = scripts
    return ray.main()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[2:]))
