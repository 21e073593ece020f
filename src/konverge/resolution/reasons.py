"""Why a resolution failed: a closed set, for a condition's reason, a metric's label and a caller's branch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["FACTS", "Facts", "Fault", "Reason"]


class Fault(StrEnum):
    """Who can mend it."""

    USER = "user"
    OPERATOR = "operator"
    REMOTE = "remote"


class Reason(StrEnum):
    """Why there is no result."""

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
class Facts:
    """What is the same for all failures of a reason.

    Args:
        fault: Who can mend it.
        may_pass: Whether the same request may succeed later with nothing changed by anybody here.
        falls_through: Whether the next source of a list may be asked instead. What was refused, or is not what its
            digest says, never is: that would turn a defence into a detour.
    """

    fault: Fault
    may_pass: bool = False
    falls_through: bool = False


FACTS: dict[Reason, Facts] = {
    Reason.INVALID_PARAMETERS: Facts(Fault.USER),
    Reason.RESOLVER_NOT_AVAILABLE: Facts(Fault.OPERATOR),
    Reason.INVALID_CONFIGURATION: Facts(Fault.OPERATOR),
    Reason.DENIED: Facts(Fault.OPERATOR),
    Reason.AUTHENTICATION_REQUIRED: Facts(Fault.USER),
    Reason.NOT_FOUND: Facts(Fault.USER, falls_through=True),
    Reason.DIGEST_MISMATCH: Facts(Fault.REMOTE),
    Reason.SIGNATURE_INVALID: Facts(Fault.REMOTE),
    Reason.UNSUPPORTED_CONTENT: Facts(Fault.USER),
    Reason.TOO_LARGE: Facts(Fault.USER),
    Reason.UNREACHABLE: Facts(Fault.REMOTE, may_pass=True, falls_through=True),
    Reason.RATE_LIMITED: Facts(Fault.REMOTE, may_pass=True, falls_through=True),
    Reason.TIMED_OUT: Facts(Fault.REMOTE, may_pass=True, falls_through=True),
    Reason.INTERNAL: Facts(Fault.OPERATOR),
}
"""By reason, in the order of `Reason`."""
