"""Options of leader election and sharding."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from datetime import timedelta

from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge.clock import Entropy
from konverge.errors import ConfigurationError

__all__ = ["LeaderElection", "LeaseTiming", "Sharding", "generate_identity"]

MAX_SHARDS = 256
"""Maximum number of shards. Each shard costs one request per retry period: more shards would mostly cost renewals."""

# The rest of 253 characters after the longest suffix of a name.
_MAX_NAME = 200
_MAX_IDENTITY = 253


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The three times of a Lease, in seconds.

    Args:
        lease_duration: Time without a renewal after which another candidate may take the Lease. It is in whole seconds,
            as in the API.
        renew_deadline: Time without a renewal after which the holder stops writing. The difference to the duration is
            the safety margin: for requests still in transit when their sender gives up, and for clocks of different
            *rate*. With 10 of 15 s, a holder's clock may run at two thirds of the speed of another clock.
        retry_period: Interval of the holder's renewals and of the checks by other candidates.
    """

    lease_duration: int
    renew_deadline: float
    retry_period: float

    @classmethod
    def from_timedeltas(
        cls, lease_duration: timedelta, renew_deadline: timedelta, retry_period: timedelta
    ) -> LeaseTiming:
        """Build the times from an author's options.

        Raises:
            ConfigurationError: The times contradict each other.
        """
        times = (lease_duration, renew_deadline, retry_period)
        duration, deadline, retry = (time.total_seconds() for time in times)
        if duration < 1 or duration != int(duration):
            raise ConfigurationError(f"lease_duration: expected whole seconds, at least 1 s, found {duration:g} s")
        if not deadline < duration:
            raise ConfigurationError(
                f"renew_deadline: expected less than lease_duration ({duration:g} s), found {deadline:g} s: "
                "the difference keeps two holders from writing at one time"
            )
        if not 0 < 2 * retry <= deadline:
            raise ConfigurationError(
                f"retry_period: expected more than zero and at most half of renew_deadline ({deadline:g} s), found "
                f"{retry:g} s: a failed renewal must leave time for another one"
            )
        return cls(int(duration), deadline, retry)


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Leader election: one replica is active, the other replicas stand by; a Lease identifies the active one.

    Args:
        name: Name of the Lease; the same for all replicas of one operator, and different from every other operator's.
        namespace: Namespace of the Lease.
        identity: Unique identity of this process; the host's name and a fresh UUID when empty.
        lease_duration: Time without a renewal after which another replica takes over; whole seconds.
        renew_deadline: Time without a renewal after which this replica stops writing; shorter than `lease_duration`.
        retry_period: Interval of the leader's renewals and of the checks by other replicas.

    Raises:
        ConfigurationError: A name is invalid, or the times contradict each other.
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
        """The three times of the Lease in seconds."""
        return LeaseTiming.from_timedeltas(self.lease_duration, self.renew_deadline, self.retry_period)


@dataclass(frozen=True, slots=True)
class Sharding:
    """Sharding: all replicas are active, each for the owners of some key ranges; each range has one Lease.

    Each shard costs one request per retry period, and each replica costs one list request per retry period.

    Args:
        name: Prefix of the names of the Leases; the same for all replicas of one operator, and different from every
            other operator's.
        namespace: Namespace of the Leases.
        shards: Number of ranges: at least the number of replicas. A small multiple is better, so that the part of a
            replica that stops goes to several others. Replicas with different numbers wait for each other (a rolling
            update).
        identity: Unique identity of this process; the host's name and a fresh UUID when empty.
        lease_duration: Time without a renewal after which another replica takes a shard; whole seconds.
        renew_deadline: Time without a renewal after which this replica stops writing; shorter than `lease_duration`.
        retry_period: Interval of the holders' renewals and of the checks by all replicas.
        release_deadline: Time for the running reconciles of a shard to finish before it is handed to another replica.

    Raises:
        ConfigurationError: A name or a number is invalid, or the times contradict each other.
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
        if errors := validate_dns_label(self.name):
            raise ConfigurationError(f"name of the sharding: {self.name!r}: expected a valid label value: {errors[0]}")
        if not 1 <= self.shards <= MAX_SHARDS:
            raise ConfigurationError(f"shards: expected a number from 1 to {MAX_SHARDS}, found {self.shards}")
        _ = self.timing

    @property
    def timing(self) -> LeaseTiming:
        """The three times of the Lease in seconds."""
        return LeaseTiming.from_timedeltas(self.lease_duration, self.renew_deadline, self.retry_period)


def generate_identity(entropy: Entropy) -> str:
    """Return the host's name, which is the pod's, with a UUID: a restarted container is another holder."""
    return f"{socket.gethostname()}_{entropy.uid()}"


def _check_names(name: str, namespace: str, identity: str) -> None:
    for field, text in (("name", name), ("namespace", namespace)):
        if errors := validate_dns_subdomain(text):
            raise ConfigurationError(f"{field} of the Lease: {text!r}: {errors[0]}")
    if len(name) > _MAX_NAME:
        raise ConfigurationError(f"name of the Lease: expected at most {_MAX_NAME} characters, found {len(name)}")
    if len(identity) > _MAX_IDENTITY or not re.fullmatch(r"[!-~]*", identity):
        raise ConfigurationError(
            f"identity: expected at most {_MAX_IDENTITY} printable ASCII characters without spaces, found {identity!r}"
        )
