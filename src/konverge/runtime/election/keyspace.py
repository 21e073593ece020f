"""Which shard an owner is in: key ranges over a hash of its UID. Pure.

The hash is the one that kube-apiserver uses for ``shardSelector=shardRange(object.metadata.uid, …)`` (KEP-5866, alpha
in Kubernetes 1.36, gate ``ShardedListAndWatch``): FNV-1a with 64 bits over the UID as it is written. So a server that
has the gate can leave out what another replica works on, and one that has not ignores the selector; then the same
function leaves it out here. The selector is for lists of owners: the objects that belong to an owner have UIDs of
their own, which say nothing about the owner's shard.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["hash_of", "range_of", "shard_of", "shard_selector"]

_KEYS = 1 << 64
_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3


def hash_of(text: str) -> int:
    """FNV-1a, 64 bits, of the text in UTF-8."""
    key = _OFFSET
    for byte in text.encode():
        key = (key ^ byte) * _PRIME % _KEYS
    return key


def shard_of(uid: str, shards: int) -> int:
    """The number of the shard, from 0, that an owner of that UID is in."""
    return hash_of(uid) * shards >> 64


def range_of(shard: int, shards: int) -> tuple[int, int]:
    """The first hash of the shard, and the first that is beyond it (at most 2 ** 64)."""
    return -(-shard * _KEYS // shards), -(-(shard + 1) * _KEYS // shards)


def shard_selector(held: Collection[int], shards: int) -> str:
    """The ``shardSelector`` of a list or watch for the owners in these shards; empty when that is all of them.

    Raises:
        ValueError: There are none: no selector selects nothing.
    """
    if not held:
        raise ValueError("no shard is held, and no selector selects nothing")
    ranges: list[tuple[int, int]] = []
    for start, end in (range_of(shard, shards) for shard in sorted(set(held))):
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    if ranges == [(0, _KEYS)]:
        return ""
    # The server refuses numbers of another width than 16 digits; 2 ** 64 alone has 17.
    return " || ".join(f"shardRange(object.metadata.uid, '0x{start:016x}', '0x{end:016x}')" for start, end in ranges)
