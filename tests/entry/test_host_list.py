"""Host lists as SLURM writes them."""

from __future__ import annotations

import pytest

from ding.entry.host_list import expanded_hosts
from ding.utils.errors import DingError


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("10-10-10-10", "10-10-10-10"),
        ("10-10-10-[11-12]", "10-10-10-11 10-10-10-12"),
        ("n[01-03,7],login", "n01 n02 n03 n7 login"),
        ("r[1-2]n[8-10]", "r1n8 r1n9 r1n10 r2n8 r2n9 r2n10"),
        ("a,b.c", "a b.c"),
        ("gpu[098-101]x", "gpu098x gpu099x gpu100x gpu101x"),
    ],
)
def test_expanded(text: str, hosts: str) -> None:
    assert expanded_hosts(text, "-clh") == tuple(hosts.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "out of place"),
        ("n[1-2", "out of place"),
        ("n1,,n2", "out of place"),
        ("n[]", "'' is no number"),
        ("n[a-c]", "'a-c' is no number and no range"),
        ("n[3-1]", "'3-1' is empty"),
        ("n[1-99999]", "too long"),
        ("n[1-2],n2", "n2 is named twice"),
        ("r[1-999]n[1-999]", "more than 10,000 hosts"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(DingError, match=rf"^-clh .*{message}.*write hosts like node1,node\[2-4\]"):
        expanded_hosts(text, "-clh")
