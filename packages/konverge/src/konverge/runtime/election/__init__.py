"""Who may work on what: leader election and sharding over Leases (``coordination.k8s.io/v1``).

A Lease is the right to reconcile the owners of one key range. Leader election is sharding with one shard: the range is
everything. In come options and a client; out come terms (`WritePermit`s that run out with them) and the news that one
has begun or is over.

Kept here: no two processes may write for one owner at one time, whatever answers are lost and however long a process
stands still, as long as their clocks run at about the same rate; the Leases are given up last, after the work has
ended; who stands by takes over within the lease duration and a retry period after a holder has died, and within a retry
period after one has stopped. A Lease is no fence for what a process had sent before it lost the Lease: deletes and
updates name the UID or the resource version that they are based on, and an apply can be repeated.

`lease_candidate`, `shard_ranges`, `shard_view` and `main_loop_watchdog` decide and do no I/O; `lease_holder`,
`campaigns` and `renewal_thread` drive them; `leadership` is what the runtime sees.
"""

from konverge.runtime.election.leadership import (
    Leadership,
    ShardAssignment,
    ShardListener,
    leader_election,
    sharding,
)
from konverge.runtime.election.options import LeaderElection, Sharding
from konverge.runtime.election.renewal_thread import LEASE_LOST_EXIT_CODE
from konverge.runtime.election.shard_ranges import compute_hash, compute_range, compute_shard

__all__ = [
    "LEASE_LOST_EXIT_CODE",
    "LeaderElection",
    "Leadership",
    "ShardAssignment",
    "ShardListener",
    "Sharding",
    "compute_hash",
    "compute_range",
    "compute_shard",
    "leader_election",
    "sharding",
]
