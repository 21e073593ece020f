"""What comes out of an admission: a verdict, and the ways to say no."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from konverge.errors import Cause, KonvergeError
from konverge.kube import Object

__all__ = ["AdmissionDeniedError", "AdmissionResponse", "Violation", "limit_warnings"]

# Where the API server begins to cut warnings, and to what length (apiserver, endpoints/filters/warning.go).
_ALL_WARNINGS_CHARACTERS = 4096
_ONE_WARNING_CHARACTERS = 256
# The server puts every cause into an event, an audit entry and a terminal; nobody reads the hundredth.
_MAX_CAUSES = 100
_MESSAGE_CHARACTERS = 8192
_MIN_REFUSAL_CODE = 400


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong with an object.

    Args:
        field: Where, for example ``spec.replicas``; empty for the object as a whole.
        message: What was expected and what was found. It is shown to whoever sent the object.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class AdmissionDeniedError(KonvergeError):
    """Raised by a handler that refuses a request; whoever sent the request sees the message.

    Args:
        message: Why, as a sentence.
        reason: The machine-readable reason of the answer's Status.
        code: The HTTP status that the sender gets, 400 to 599.
        violations: The single mistakes; they become the Status' causes.

    Raises:
        ValueError: The code is not one of a failure.
    """

    def __init__(
        self, message: str, *, reason: str = "Forbidden", code: int = 403, violations: Sequence[Violation] = ()
    ) -> None:
        if not _MIN_REFUSAL_CODE <= code <= 599:
            raise ValueError(f"code: expected the HTTP status of a failure, 400 to 599, found {code}")
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.code = code
        self.violations = tuple(violations)


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The answer to one admission request.

    Args:
        allowed: Whether the request goes on.
        message: Why not.
        reason: The machine-readable reason of a refusal, for example ``Invalid``.
        code: The HTTP status of a refusal.
        causes: The single mistakes of a refusal.
        patch: The operations of a JSON patch (RFC 6902) on the object; only of a request that is allowed.
        warnings: What whoever sent the request is shown beside the answer.
    """

    allowed: bool = True
    message: str = ""
    reason: str = ""
    code: int = 200
    causes: tuple[Cause, ...] = ()
    patch: tuple[Object, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def from_denial(cls, denied: AdmissionDeniedError) -> AdmissionResponse:
        """The refusal that a handler raised."""
        return cls._build_refusal(denied.message, denied.reason, denied.code, denied.violations)

    @classmethod
    def from_violations(cls, subject: str, violations: Sequence[Violation]) -> AdmissionResponse:
        """A refusal (422, ``Invalid``) of an object with these mistakes.

        Args:
            subject: The object, for example ``WebApp default/web``.
            violations: At least one.
        """
        told = [str(violation) for violation in violations[:_MAX_CAUSES]]
        left = len(violations) - len(told)
        if left:
            told.append(f"and {left} more")
        return cls._build_refusal(f"{subject} is invalid: {'; '.join(told)}", "Invalid", 422, violations)

    @classmethod
    def from_failure(cls, message: str, *, reason: str = "InternalError", code: int = 500) -> AdmissionResponse:
        """A refusal because we could not tell; the message names no value of the object."""
        return cls._build_refusal(message, reason, code, ())

    @classmethod
    def _build_refusal(cls, message: str, reason: str, code: int, violations: Sequence[Violation]) -> AdmissionResponse:
        causes = tuple(
            Cause("FieldValueInvalid", violation.message[:_MESSAGE_CHARACTERS], violation.field)
            for violation in violations[:_MAX_CAUSES]
        )
        return cls(allowed=False, message=message[:_MESSAGE_CHARACTERS], reason=reason, code=code, causes=causes)

    def with_warnings(self, warnings: Iterable[str]) -> AdmissionResponse:
        """The same with these warnings too."""
        return replace(self, warnings=(*self.warnings, *warnings))


def limit_warnings(warnings: Sequence[str]) -> list[str]:
    """The warnings as the API server would pass them on: each once, and cut when they are too long together.

    The server shows them whole up to 4,096 characters; beyond that each is cut to 256, and what still does not fit is
    left out. It would do so itself: doing it here bounds the answer.
    """
    told = [text for text in dict.fromkeys(warnings) if text]
    if sum(map(len, told)) <= _ALL_WARNINGS_CHARACTERS:
        return told
    kept: list[str] = []
    room = _ALL_WARNINGS_CHARACTERS
    for text in told:
        short = text[:_ONE_WARNING_CHARACTERS]
        if len(short) > room:
            break
        kept.append(short)
        room -= len(short)
    return kept
