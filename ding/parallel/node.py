"""`python -m ding.parallel.node MARK HOST start ...`: Ray's command `start`.

With a HOST of this machine alone, every server of Ray stays there too: by itself Ray would let
nobody join such a head, and would look for another address. MARK is how a guard knows the process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from ding.parallel.cluster import LOOPBACK, START_SECONDS

_BETWEEN_LOOKS = 0.5


def patient(get_node: Callable[[str, str], Any]) -> Callable[[str, str], Any]:
    """Ray's question for a node, asked until the node has registered.

    By itself Ray gives a node 30 seconds, and ends it then; no setting changes that.
    """

    def get_node_in_time(gcs_address: str, node_id: str) -> Any:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                return get_node(gcs_address, node_id)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
            time.sleep(_BETWEEN_LOOKS)

    return get_node_in_time


def main(host: str, *words: str) -> Any:
    from ray._private import services
    from ray.scripts import scripts

    if host == LOOPBACK:
        services.get_node_ip_address = lambda address=None: LOOPBACK
    services.get_node = patient(services.get_node)
    sys.argv = ["ray", *words]
    ray: Any = scripts
    return ray.main()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[2:]))
