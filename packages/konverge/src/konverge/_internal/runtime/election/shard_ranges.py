"""The shard of an owner: key ranges over a hash of its UID. Pure.

The hash is the one that kube-apiserver uses for ``shardSelector=shardRange(object.metadata.uid, …)`` (KEP-5866, alpha
in Kubernetes 1.36, gate ``ShardedListAndWatch``): 64-bit FNV-1a over the UID as text. A server with the gate could
therefore omit the owners of other replicas by the same ranges. This works only for owners: the objects of an owner have
their own UIDs, which do not determine the owner's shard.
"""

from __future__ import annotations

__all__ = ["compute_hash", "compute_range", "compute_shard"]

_KEYS = 1 << 64
_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3


def compute_hash(text: str) -> int:
    """Return the 64-bit FNV-1a hash of the text in UTF-8."""
    key = _OFFSET
    for byte in text.encode():
        key = (key ^ byte) * _PRIME % _KEYS
    return key


def compute_shard(uid: str, shards: int) -> int:
    """Return the shard number, from 0, of an owner with the UID."""
    return compute_hash(uid) * shards >> 64


def compute_range(shard: int, shards: int) -> tuple[int, int]:
    """Return the first hash of the shard, and the first hash after it (at most 2 ** 64)."""
    return -(-shard * _KEYS // shards), -(-(shard + 1) * _KEYS // shards)
