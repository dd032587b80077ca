"""Which frames are stored already: a table of hashes, compiled.

A frame is a row of whole words in `pool`. `table` is open-addressed: 0 is free, else one more than
the id of a frame whose hash belongs there. `info` has a row of numbers per frame (HASH to FREE).
"""

# numba has no types that mypy could check.
# mypy: disable-error-code="misc, no-untyped-call, import-untyped, return-value, assignment"
from __future__ import annotations

import numpy as np
from numba import njit

_P = np.uint64(0x9E3779B97F4A7C15)
_Q = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)

HASH, USES, OWNER, FREE = 0, 1, 2, 3
"""Columns of `info`: hash; how often rows refer to the frame; the last row whose next_obs ended
with it; and, of the list of free ids, one entry."""
N_FREE, N_USED, LAG, JUMPS = 0, 1, 2, 3
"""Of `counts`: entries of the free list; frames ever used; how many rows back the last step was;
how often next_obs was not obs moved on by one frame."""


@njit(cache=True)
def hash_of(frame: np.ndarray) -> np.int64:
    """Six lanes, so that multiplications overlap."""
    a, b, c, d, e, f = _P, _Q, _P ^ _Q, _P + _Q, _P - _Q, _P & _Q
    n = len(frame)
    whole = n - n % 6
    for i in range(0, whole, 6):
        a = (a ^ frame[i]) * _P
        b = (b ^ frame[i + 1]) * _Q
        c = (c ^ frame[i + 2]) * _P
        d = (d ^ frame[i + 3]) * _Q
        e = (e ^ frame[i + 4]) * _P
        f = (f ^ frame[i + 5]) * _Q
        a ^= a >> _SHIFT
        b ^= b >> _SHIFT
        c ^= c >> _SHIFT
        d ^= d >> _SHIFT
        e ^= e >> _SHIFT
        f ^= f >> _SHIFT
    for i in range(whole, n):
        a = (a ^ frame[i]) * _P
        a ^= a >> _SHIFT
    h = (a * _Q ^ b) * _P + (c * _Q ^ d) * _Q + (e * _P ^ f)
    return np.int64(h ^ (h >> _SHIFT))


@njit(cache=True)
def same(a: np.ndarray, b: np.ndarray) -> bool:
    difference = np.uint64(0)
    for i in range(len(a)):
        difference |= a[i] ^ b[i]
    return difference == 0


@njit(cache=True)
def same_as_both(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[bool, bool]:
    """Whether `a` is `b`, and whether it is `c`; read once."""
    from_b, from_c = np.uint64(0), np.uint64(0)
    for i in range(len(a)):
        from_b |= a[i] ^ b[i]
        from_c |= a[i] ^ c[i]
    return from_b == 0, from_c == 0


@njit(cache=True)
def lookup(
    frame: np.ndarray, h: np.int64, pool: np.ndarray, info: np.ndarray, table: np.ndarray
) -> int:
    """The id of the frame, or -1 - (place in the table where it would go)."""
    mask = len(table) - 1
    place = h & mask
    while table[place] > 0:
        i = table[place] - 1
        if info[i, HASH] == h and same(pool[i], frame):
            return i
        place = (place + 1) & mask
    return -1 - place


@njit(cache=True)
def forget(i: int, info: np.ndarray, table: np.ndarray) -> None:
    """Take a frame out of the table and close the gap behind it."""
    mask = len(table) - 1
    place = info[i, HASH] & mask
    while table[place] != i + 1:
        place = (place + 1) & mask
    gap = place
    while True:
        place = (place + 1) & mask
        j = table[place] - 1
        if j < 0:
            break
        home = info[j, HASH] & mask
        # j may move into the gap unless its home lies between the gap and where it is.
        if ((place - home) & mask) >= ((place - gap) & mask):
            table[gap] = j + 1
            gap = place
    table[gap] = 0


@njit(cache=True)
def restore(
    n: int, pool: np.ndarray, info: np.ndarray, table: np.ndarray, counts: np.ndarray
) -> None:
    """Fill an empty table with the first `n` frames, as far as they are in use; free the others."""
    mask = len(table) - 1
    counts[N_FREE], counts[N_USED], counts[LAG] = 0, n, 1
    for i in range(n):
        if info[i, USES] > 0:
            info[i, HASH] = hash_of(pool[i])
            place = info[i, HASH] & mask
            while table[place] > 0:
                place = (place + 1) & mask
            table[place] = i + 1
        else:
            info[counts[N_FREE], FREE] = i
            counts[N_FREE] += 1


@njit(cache=True)
def _id_of(
    frame: np.ndarray, pool: np.ndarray, info: np.ndarray, table: np.ndarray, counts: np.ndarray
) -> int:
    """The id of a frame, which is stored if it is new."""
    h = hash_of(frame)
    i = lookup(frame, h, pool, info, table)
    if i < 0:
        place = -1 - i
        if counts[N_FREE] > 0:
            counts[N_FREE] -= 1
            i = info[counts[N_FREE], FREE]
        else:
            i = counts[N_USED]
            counts[N_USED] += 1
        pool[i] = frame
        info[i, HASH] = h
        table[place] = i + 1
    return i


@njit(cache=True)
def _obs_ids(  # noqa: PLR0913 (arrays can't be bundled)
    frames: np.ndarray,
    next_frames: np.ndarray,
    slot: int,
    ids: np.ndarray,
    pool: np.ndarray,
    info: np.ndarray,
    table: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Ids of a stack, into the last row of `ids`: those of the next_obs that it was, if it was.

    Those of next_obs too where it is obs moved on by one frame; -1 where it is not.
    """
    k, size = len(frames), len(ids) - 1
    new = ids[size]
    row = (slot - counts[LAG]) % size
    newest = int(ids[row, k])
    is_newest, moved = same_as_both(frames[k - 1], pool[max(newest, 0)], next_frames[k - 2])
    if newest < 0 or not is_newest:
        newest = _id_of(frames[k - 1], pool, info, table, counts)
        row = info[newest, OWNER]
    new[k - 1] = newest
    new[2 * k - 1] = newest if moved else -1
    known = ids[row, k] == newest
    if known:
        counts[LAG] = (slot - row) % size
    for j in range(k - 1):
        likely = ids[row, k + 1 + j] if known else newest
        # The frame before the first of next_obs is gone: compared with any other.
        is_likely, moved = same_as_both(frames[j], pool[likely], next_frames[max(j - 1, 0)])
        if is_likely:
            new[j] = likely
        elif likely != newest and same(frames[j], pool[newest]):  # after a reset
            new[j] = newest
        else:
            new[j] = _id_of(frames[j], pool, info, table, counts)
        if j:
            new[k + j] = new[j] if moved else -1


@njit(cache=True)
def store_rows(  # noqa: PLR0913 (arrays can't be bundled)
    obs: np.ndarray,
    next_obs: np.ndarray,
    where: tuple[int, bool],
    ids: np.ndarray,
    pool: np.ndarray,
    info: np.ndarray,
    table: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Stacks of whole words (n, k, ...) into slots from `start` on.

    A row has the ids of obs, of the newest frame of next_obs and of its others. Unless `keep`,
    frames that only the overwritten rows needed are freed. `ids` has one row more than slots, for
    what is being written.
    """
    start, keep = where
    n, k, size, words = obs.shape[0], obs.shape[1], len(ids) - 1, pool.shape[1]
    frames = obs.reshape(n * k * words * 8 // obs.itemsize).view(np.uint64).reshape((n, k, words))
    flat = next_obs.reshape(n * k * words * 8 // obs.itemsize)
    next_frames = flat.view(np.uint64).reshape((n, k, words))
    new = ids[size]
    for row in range(n):
        slot = (start + row) % size
        _obs_ids(frames[row], next_frames[row], slot, ids, pool, info, table, counts)
        new[k] = _id_of(next_frames[row, k - 1], pool, info, table, counts)
        for j in range(k - 1):
            if new[k + 1 + j] < 0:
                new[k + 1 + j] = _id_of(next_frames[row, j], pool, info, table, counts)
                counts[JUMPS] += 1
        for j in range(2 * k):
            info[new[j], USES] += 1
        if ids[slot, 0] >= 0 and not keep:
            release(ids[slot], info, table, counts)
        ids[slot] = new
        info[new[k], OWNER] = slot


@njit(cache=True)
def release(ids: np.ndarray, info: np.ndarray, table: np.ndarray, counts: np.ndarray) -> None:
    """Forget frames that nothing refers to any more."""
    for k in range(len(ids)):
        i = ids[k]
        info[i, USES] -= 1
        if info[i, USES] == 0:
            forget(i, info, table)
            info[counts[N_FREE], FREE] = i
            counts[N_FREE] += 1
