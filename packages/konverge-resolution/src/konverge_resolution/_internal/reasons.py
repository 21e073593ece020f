"""Reasons of failures: a closed set for condition reasons, metric labels and branches of callers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["REASON_TRAITS", "Fault", "Reason", "ReasonTraits"]


class Fault(StrEnum):
    """Party that can correct the failure."""

    USER = "user"
    OPERATOR = "operator"
    REMOTE = "remote"


class Reason(StrEnum):
    """Reason why there is no result."""

    INVALID_PARAMETERS = "InvalidParams"
    RESOLVER_NOT_AVAILABLE = "ResolverNotAvailable"
    INVALID_CONFIGURATION = "InvalidConfiguration"
    DENIED = "Denied"
    AUTHENTICATION_REQUIRED = "AuthRequired"
    NOT_FOUND = "NotFound"
    DIGEST_MISMATCH = "DigestMismatch"
    SIGNATURE_INVALID = "SignatureInvalid"
    UNSUPPORTED_CONTENT = "UnsupportedContent"
    TOO_LARGE = "TooLarge"
    UNREACHABLE = "Unreachable"
    RATE_LIMITED = "RateLimited"
    TIMED_OUT = "TimedOut"
    INTERNAL = "Internal"


@dataclass(frozen=True, slots=True)
class ReasonTraits:
    """Properties that all failures of a reason share.

    Args:
        fault: The party that can correct it.
        is_transient: Whether the same request may succeed later without a change here.
        allows_failover: Whether the next source of a list may be used instead. Not for refused content or a wrong
            digest: an attacker could otherwise use a failover to bypass the check.
    """

    fault: Fault
    is_transient: bool = False
    allows_failover: bool = False


REASON_TRAITS: dict[Reason, ReasonTraits] = {
    Reason.INVALID_PARAMETERS: ReasonTraits(Fault.USER),
    Reason.RESOLVER_NOT_AVAILABLE: ReasonTraits(Fault.OPERATOR),
    Reason.INVALID_CONFIGURATION: ReasonTraits(Fault.OPERATOR),
    Reason.DENIED: ReasonTraits(Fault.OPERATOR),
    Reason.AUTHENTICATION_REQUIRED: ReasonTraits(Fault.USER),
    Reason.NOT_FOUND: ReasonTraits(Fault.USER, allows_failover=True),
    Reason.DIGEST_MISMATCH: ReasonTraits(Fault.REMOTE),
    Reason.SIGNATURE_INVALID: ReasonTraits(Fault.REMOTE),
    Reason.UNSUPPORTED_CONTENT: ReasonTraits(Fault.USER),
    Reason.TOO_LARGE: ReasonTraits(Fault.USER),
    Reason.UNREACHABLE: ReasonTraits(Fault.REMOTE, is_transient=True, allows_failover=True),
    Reason.RATE_LIMITED: ReasonTraits(Fault.REMOTE, is_transient=True, allows_failover=True),
    Reason.TIMED_OUT: ReasonTraits(Fault.REMOTE, is_transient=True, allows_failover=True),
    Reason.INTERNAL: ReasonTraits(Fault.OPERATOR),
}
"""Traits by reason, in the order of `Reason`."""
