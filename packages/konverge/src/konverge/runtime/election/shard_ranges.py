"""Which shard an owner is in: key ranges over a hash of its UID. Pure.

The hash is the one that kube-apiserver uses for ``shardSelector=shardRange(object.metadata.uid, …)`` (KEP-5866, alpha
in Kubernetes 1.36, gate ``ShardedListAndWatch``): FNV-1a with 64 bits over the UID as it is written. So a server that
has the gate could leave out what another replica works on, by the same ranges; of owners only, since the objects that
belong to an owner have UIDs of their own, which say nothing about the owner's shard.
"""

from __future__ import annotations

__all__ = ["compute_hash", "compute_range", "compute_shard"]

_KEYS = 1 << 64
_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3


def compute_hash(text: str) -> int:
    """FNV-1a, 64 bits, of the text in UTF-8."""
    key = _OFFSET
    for byte in text.encode():
        key = (key ^ byte) * _PRIME % _KEYS
    return key


def compute_shard(uid: str, shards: int) -> int:
    """The number of the shard, from 0, that an owner of that UID is in."""
    return compute_hash(uid) * shards >> 64


def compute_range(shard: int, shards: int) -> tuple[int, int]:
    """The first hash of the shard, and the first that is beyond it (at most 2 ** 64)."""
    return -(-shard * _KEYS // shards), -(-(shard + 1) * _KEYS // shards)
