"""The C library's allocator, told to keep what is freed."""

from __future__ import annotations

import ctypes
import os
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_LARGEST_KEPT = 32 << 20
_KEPT_IN_ALL = 256 << 20


@cache
def keep_freed_memory() -> bool:
    """Keep freed blocks for the next update; whether the allocator can be told so.

    An update takes and frees blocks of some hundred kilobytes all the time. What goes back to the
    system comes again as a page fault for every 4 KiB: hundreds per update, up to a fifth of its
    time. Limits that are set in the environment (MALLOC_..., GLIBC_TUNABLES) stay as they are.
    """
    libc = ctypes.CDLL(None)
    is_glibc = hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "mallopt")
    chosen_by_user = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if not is_glibc or chosen_by_user:
        return False
    kept = libc.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
    return bool(kept and libc.mallopt(_TRIM_THRESHOLD, _KEPT_IN_ALL))
