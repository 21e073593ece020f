"""What an author chooses about leader election and sharding."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from datetime import timedelta

from konverge.clock import Entropy
from konverge.errors import ConfigurationError
from konverge.kube.name_validation import validate_dns_label, validate_dns_subdomain

__all__ = ["LeaderElection", "LeaseTiming", "Sharding", "generate_identity"]

MAX_SHARDS = 256
"""More would be mostly renewals: each shard costs one request in each retry period, whoever holds it."""

# What remains of 253 characters after the longest that is appended to a name.
_MAX_NAME = 200
_MAX_IDENTITY = 253


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The three times of a Lease, in seconds.

    Args:
        lease_duration: After so long without a renewal somebody else may take the Lease; whole seconds, since that is
            how the record says it.
        renew_deadline: After so long without a renewal the holder stops writing. What it is shorter than the duration
            is the margin: for requests that are on their way when their sender gives up, and for clocks of different
            *rate* (with 10 of 15 s, a holder's clock may run at two thirds of the speed of another's).
        retry_period: How often the holder renews and others look.
    """

    lease_duration: int
    renew_deadline: float
    retry_period: float

    @classmethod
    def from_timedeltas(
        cls, lease_duration: timedelta, renew_deadline: timedelta, retry_period: timedelta
    ) -> LeaseTiming:
        """From what an author wrote.

        Raises:
            ConfigurationError: The times do not fit each other.
        """
        duration, deadline, retry = (each.total_seconds() for each in (lease_duration, renew_deadline, retry_period))
        if duration < 1 or duration != int(duration):
            raise ConfigurationError(f"lease_duration must be whole seconds, at least one (found {duration:g} s)")
        if not deadline < duration:
            raise ConfigurationError(
                f"renew_deadline must be shorter than lease_duration ({duration:g} s; found {deadline:g} s): "
                "the difference is what keeps two holders from writing at one time"
            )
        if not 0 < 2 * retry <= deadline:
            raise ConfigurationError(
                f"retry_period must be above zero and at most half of renew_deadline ({deadline:g} s; found "
                f"{retry:g} s): one renewal that fails must leave time for another"
            )
        return cls(int(duration), deadline, retry)


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """One replica works, the others stand by; a Lease says which one.

    Args:
        name: The Lease's name; the same for all replicas of one operator, and no other operator's.
        namespace: The Lease's namespace.
        identity: Who this process is; it must be no other process's. Empty for the host's name and a fresh UUID.
        lease_duration: After so long without a renewal another replica takes over; whole seconds.
        renew_deadline: After so long without a renewal this replica stops writing; shorter than `lease_duration`.
        retry_period: How often the leader renews and the others look.

    Raises:
        ConfigurationError: A name is none, or the times do not fit each other.
    """

    name: str
    namespace: str
    identity: str = ""
    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)

    def __post_init__(self) -> None:
        _check_names(self.name, self.namespace, self.identity)
        _ = self.timing

    @property
    def timing(self) -> LeaseTiming:
        """The times in seconds."""
        return LeaseTiming.from_timedeltas(self.lease_duration, self.renew_deadline, self.retry_period)


@dataclass(frozen=True, slots=True)
class Sharding:
    """Every replica works, each on the owners of some key ranges; one Lease for each range says which one.

    Each shard costs one request in each retry period, whoever holds it; each replica besides one request that lists.

    Args:
        name: What the Leases' names begin with; the same for all replicas of one operator, and no other operator's.
        namespace: The Leases' namespace.
        shards: Into how many ranges the owners are divided: at least the number of replicas, better a few times as
            many, so that a replica that goes leaves its part to more than one. Replicas that say different numbers
            wait for each other (a rolling update).
        identity: Who this process is; it must be no other process's. Empty for the host's name and a fresh UUID.
        lease_duration: After so long without a renewal another replica takes a shard; whole seconds.
        renew_deadline: After so long without a renewal this replica stops writing; shorter than `lease_duration`.
        retry_period: How often holders renew and everybody looks.
        release_deadline: How long the passes of a shard may take to end when it is handed to another replica.

    Raises:
        ConfigurationError: A name or a number is none, or the times do not fit each other.
    """

    name: str
    namespace: str
    shards: int
    identity: str = ""
    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)
    release_deadline: timedelta = timedelta(seconds=30)

    def __post_init__(self) -> None:
        _check_names(self.name, self.namespace, self.identity)
        if wrong := validate_dns_label(self.name):
            raise ConfigurationError(f"the name of a sharding is the value of a label too: {self.name!r}: {wrong[0]}")
        if not 1 <= self.shards <= MAX_SHARDS:
            raise ConfigurationError(f"shards must be from 1 to {MAX_SHARDS} (found {self.shards})")
        _ = self.timing

    @property
    def timing(self) -> LeaseTiming:
        """The times in seconds."""
        return LeaseTiming.from_timedeltas(self.lease_duration, self.renew_deadline, self.retry_period)


def generate_identity(entropy: Entropy) -> str:
    """The host's name, which is the pod's, and a UUID: a container that restarts is another holder."""
    return f"{socket.gethostname()}_{entropy.uid()}"


def _check_names(name: str, namespace: str, identity: str) -> None:
    for what, text in (("name", name), ("namespace", namespace)):
        if wrong := validate_dns_subdomain(text):
            raise ConfigurationError(f"the {what} of a Lease: {text!r}: {wrong[0]}")
    if len(name) > _MAX_NAME:
        raise ConfigurationError(f"the name of a Lease: at most {_MAX_NAME} characters (found {len(name)})")
    if len(identity) > _MAX_IDENTITY or not re.fullmatch(r"[!-~]*", identity):
        raise ConfigurationError(
            f"an identity is at most {_MAX_IDENTITY} printable ASCII characters without spaces (found {identity!r})"
        )
