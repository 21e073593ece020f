"""The result of an admission: a response, and the kinds of refusals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from konverge._internal.kube import Object
from konverge.errors import Cause, KonvergeError

__all__ = ["AdmissionDeniedError", "AdmissionResponse", "Violation", "limit_warnings"]

# Total length from which the API server cuts warnings, and the length of a cut one (apiserver,
# endpoints/filters/warning.go).
_ALL_WARNINGS_CHARACTERS = 4096
_ONE_WARNING_CHARACTERS = 256
# The server copies every cause to an event, an audit entry and a terminal: more than a hundred help no user.
_MAX_CAUSES = 100
_MESSAGE_CHARACTERS = 8192
_MIN_REFUSAL_CODE = 400


@dataclass(frozen=True, slots=True)
class Violation:
    """One validation error of an object.

    Args:
        field: The field path, for example ``spec.replicas``; empty for the object as a whole.
        message: The expected and the actual value. The client that sent the object sees it.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class AdmissionDeniedError(KonvergeError):
    """Raised by a handler to refuse a request; the client that sent the request sees the message.

    Args:
        message: The cause, as a sentence.
        reason: The machine-readable reason in the Status of the response.
        code: The HTTP status of the response, 400 to 599.
        violations: The single validation errors; they become the Status' causes.

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
        self.violations: tuple[Violation, ...] = tuple(violations)


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """The response to one admission request.

    Args:
        allowed: Whether the request is allowed.
        message: The cause of a refusal.
        reason: The machine-readable reason of a refusal, for example ``Invalid``.
        code: The HTTP status of a refusal.
        causes: The single validation errors of a refusal.
        patch: The operations of a JSON patch (RFC 6902) on the object; only for an allowed request.
        warnings: Warnings for the client that sent the request.
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
        """Return the refusal for an error that a handler raised."""
        return cls._build_refusal(denied.message, denied.reason, denied.code, denied.violations)

    @classmethod
    def from_violations(cls, subject: str, violations: Sequence[Violation]) -> AdmissionResponse:
        """Return a refusal (422, ``Invalid``) of an object with these validation errors.

        Args:
            subject: The object, for example ``WebApp default/web``.
            violations: At least one.
        """
        messages = [str(violation) for violation in violations[:_MAX_CAUSES]]
        omitted = len(violations) - len(messages)
        if omitted:
            messages.append(f"and {omitted} more")
        return cls._build_refusal(f"{subject} is invalid: {'; '.join(messages)}", "Invalid", 422, violations)

    @classmethod
    def from_failure(cls, message: str, *, reason: str = "InternalError", code: int = 500) -> AdmissionResponse:
        """Return a refusal because the review failed; the message contains no value of the object."""
        return cls._build_refusal(message, reason, code, ())

    @classmethod
    def _build_refusal(cls, message: str, reason: str, code: int, violations: Sequence[Violation]) -> AdmissionResponse:
        causes = tuple(
            Cause("FieldValueInvalid", violation.message[:_MESSAGE_CHARACTERS], violation.field)
            for violation in violations[:_MAX_CAUSES]
        )
        return cls(allowed=False, message=message[:_MESSAGE_CHARACTERS], reason=reason, code=code, causes=causes)

    def with_warnings(self, warnings: Iterable[str]) -> AdmissionResponse:
        """Return a copy with these additional warnings."""
        return replace(self, warnings=(*self.warnings, *warnings))


def limit_warnings(warnings: Sequence[str]) -> list[str]:
    """Return the warnings as the API server would pass them on: each once, cut if they are too long together.

    The server passes them on completely up to 4,096 characters; beyond that each is cut to 256, and the rest is
    dropped. The server would do so itself; here it limits the size of the response.
    """
    unique = [text for text in dict.fromkeys(warnings) if text]
    if sum(map(len, unique)) <= _ALL_WARNINGS_CHARACTERS:
        return unique
    kept: list[str] = []
    room = _ALL_WARNINGS_CHARACTERS
    for text in unique:
        short = text[:_ONE_WARNING_CHARACTERS]
        if len(short) > room:
            break
        kept.append(short)
        room -= len(short)
    return kept
