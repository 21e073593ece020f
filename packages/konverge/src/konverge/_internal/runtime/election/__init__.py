"""Leader election and sharding over Leases (``coordination.k8s.io/v1``).

A Lease is the right to reconcile the owners of one key range. Leader election is sharding with one shard: the range
contains all keys. The input is options and a client. The output is terms (`WritePermit`s that expire with them) and
calls that report the begin and the end of a term.

The package keeps these guarantees, as long as the clocks of the replicas run at about the same rate:

* No two processes write for one owner at one time, whatever responses are lost and however long a process is suspended.
* The Leases are released last, after the work has ended.
* A standby replica takes over within the lease duration and a retry period after a holder has crashed, and within a
  retry period after a holder has stopped.

A Lease is not a fence for requests that a process had sent before it lost the Lease. Deletes and updates therefore name
the UID or the resource version that they are based on, and an apply can be repeated.

`lease_candidate`, `shard_ranges`, `shard_view` and `main_loop_watchdog` decide and perform no I/O; `lease_holder`,
`campaigns` and `renewal_thread` drive them; `leadership` is the interface for the runtime.
"""

from konverge._internal.runtime.election.leadership import (
    Leadership,
    ShardAssignment,
    ShardListener,
    leader_election,
    sharding,
)
from konverge._internal.runtime.election.options import LeaderElection, Sharding
from konverge._internal.runtime.election.renewal_thread import LEASE_LOST_EXIT_CODE
from konverge._internal.runtime.election.shard_ranges import compute_hash, compute_range, compute_shard

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
