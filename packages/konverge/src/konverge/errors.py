"""The error tree: everything a user of konverge may want to catch is a `KonvergeError`.

There is one class for each thing a caller would do differently, and no more. A message names the thing, what was
expected, what was found and, where one exists, the next step. Messages never hold the value of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from konverge.message_text import shorten

__all__ = [
    "AlreadyExistsError",
    "ApiError",
    "BadRequestError",
    "BuildError",
    "Cause",
    "ConfigurationError",
    "ConflictError",
    "ConnectionFailedError",
    "DecodeError",
    "ExpiredError",
    "ForbiddenError",
    "FunctionInterrupt",
    "FunctionTimeoutError",
    "InvalidError",
    "KindNotServedError",
    "KindUnreachableError",
    "KonvergeError",
    "NoKubeconfigError",
    "NoPermitError",
    "NotConnectedError",
    "NotExtractedError",
    "NotFoundError",
    "ReconcileError",
    "ServerError",
    "StartError",
    "TerminalError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UntrustedServerError",
]


_MAX_RETRY_AFTER_SECONDS = 600.0
_MAX_TEXT_LENGTH = 10_000


class KonvergeError(Exception):
    """The root of the tree."""


class BuildError(KonvergeError):
    """A builder was given something it cannot build; every mistake that it found is in `mistakes`.

    Args:
        subject: What was being built, for example ``component "frontend"``.
        errors: One sentence each, in the order in which they were made.
    """

    def __init__(self, subject: str, errors: Sequence[str]) -> None:
        self.subject = subject
        self.errors = tuple(errors)
        count = len(self.errors)
        lines = "".join(f"\n  - {mistake}" for mistake in self.errors)
        super().__init__(f"{subject} cannot be built: {count} mistake{'s' if count != 1 else ''}{lines}")


class ConfigurationError(KonvergeError):
    """A kubeconfig, an operator file or an option cannot be used; the message says why and where."""


class NoKubeconfigError(ConfigurationError):
    """No file describes a cluster; the message says where it was looked for one."""


class ReconcileError(KonvergeError):
    """A component's pass failed; the condition already says so. Raised so that the queue backs off."""


class TerminalError(ReconcileError):
    """Trying again cannot help before the owner or one of its objects changes: the key is not retried."""


class NotExtractedError(KonvergeError):
    """A data cell was read that nothing has filled in this pass.

    Args:
        name: The cell's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f'data "{name}" is not extracted: nothing has filled it in this pass. Declare it with requires= on the '
            "resource that reads it, or read it with get(); to render without a cluster, give its value: "
            f"preview(data={{{name!r}: ...}}), konverge preview --data"
        )


class FunctionInterrupt(BaseException):
    """Raised from outside in an author's function that does not return; becomes a `KonvergeError` where it was called.

    Not an ``Exception``, so that a function that tries something again and again after any failure ends all the same.

    Args:
        steps: What was being done, the outermost first.
    """

    def __init__(self, *steps: str) -> None:
        super().__init__(*steps)


class FunctionTimeoutError(KonvergeError):
    """An author's function did not return in time, and was ended; the message says where it was."""


class DecodeError(TerminalError):
    """An object does not fit the class that it is read as.

    Args:
        subject: The object, for example ``WebApp default/web``.
        path: The field that does not fit, in JSON names; empty for the object itself.
        problem: What was expected and what was found.
    """

    def __init__(self, subject: str, path: str, problem: str) -> None:
        self.subject = subject
        self.path = path
        self.problem = f"{path}: {problem}" if path else problem
        super().__init__(f"{subject}: {self.problem}")


class ConnectionFailedError(KonvergeError):
    """The server could not be reached, hung up, or did not answer within the deadline.

    A write that ended so may have happened or not.
    """


class NotConnectedError(ConnectionFailedError):
    """No connection came about, so nothing was sent: repeating even a write is safe."""


class UntrustedServerError(ConnectionFailedError):
    """The TLS handshake failed: nothing was sent, and trying again cannot help before somebody mends a certificate."""


class StartError(KonvergeError):
    """An operator could not start within its time limit; the cause is the last failure of the step at fault."""


class NoPermitError(KonvergeError):
    """A write was not sent, since this process may have lost the lease that lets it write. Nobody tries it again."""


class KindNotServedError(KonvergeError):
    """The server does not serve this kind (now): its CustomResourceDefinition is absent or its version is off."""


class KindUnreachableError(KindNotServedError):
    """Whether this kind is served cannot be told now: the aggregated API server of its group does not answer.

    There may be objects of it. Who would delete something, or let go of it, because there are none has to wait.
    """


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of a Status' ``details.causes``: which field was wrong and how."""

    reason: str
    message: str
    field: str = ""


class ApiError(KonvergeError):
    """The API server answered with a failure ``Status``.

    Args:
        message: The server's own sentence.
        reason: The machine-readable reason of the Status, for example ``Conflict``.
        code: The HTTP status code.
        details: The Status' ``details``: kind, name, causes.
        retry_after_seconds: What the server asked for in ``Retry-After`` or ``details.retryAfterSeconds``; None when it
            did not.

    Attributes:
        request: The method and the URL of the request, without its query; empty when the error is not from a client.
        is_withheld: Tell whether the server's words have been taken out, since they may repeat the value of a Secret;
            `message` and `causes` hold what remains.
    """

    default_reason = "Unknown"
    default_code = 500
    is_withheld = False

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        code: int | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = self.default_reason if reason is None else reason
        self.code = self.default_code if code is None else code
        self.details: dict[str, Any] = dict(details or {})
        self.retry_after_seconds = retry_after_seconds
        self.request = ""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The single mistakes behind the failure, in the server's order; empty when it named none."""
        listed = self.details.get("causes")
        if not isinstance(listed, list):
            return ()
        return tuple(
            Cause(str(item.get("reason", "")), str(item.get("message", "")), str(item.get("field", "")))
            for item in listed
            if isinstance(item, Mapping)
        )

    @property
    def is_namespace_terminating(self) -> bool:
        """Tell whether it is refused because the namespace is being deleted: nothing new can be made in it any more."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)

    def to_status(self) -> dict[str, Any]:
        """The failure as the ``Status`` object that an API server sends (meta/v1)."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retryAfterSeconds"] = int(self.retry_after_seconds)
        if details:
            status["details"] = details
        return status

    @staticmethod
    def from_status(code: int, status: Mapping[str, Any], *, retry_after_seconds: float | None = None) -> ApiError:
        """The error of the right class for a failure answer.

        Args:
            code: The HTTP status code of the answer.
            status: The decoded ``Status``; missing or wrongly typed fields are tolerated, since a proxy may have
                answered.
            retry_after_seconds: The ``Retry-After`` header, when there was one.
        """
        reason = str(status.get("reason") or "")
        kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)
        details = status.get("details")
        details = details if isinstance(details, Mapping) else {}
        if retry_after_seconds is None:
            wanted = details.get("retryAfterSeconds")
            retry_after_seconds = float(wanted) if isinstance(wanted, int | float) else None
        if retry_after_seconds is not None:
            # Nobody is sent away for longer by one wrong header.
            retry_after_seconds = min(max(0.0, retry_after_seconds), _MAX_RETRY_AFTER_SECONDS)
        return kind(
            str(status.get("message") or f"the server answered with HTTP status {code}"),
            reason=reason or None,
            code=code,
            details=details,
            retry_after_seconds=retry_after_seconds,
        )


class BadRequestError(ApiError):
    """400: the request itself makes no sense to the server."""

    default_reason = "BadRequest"
    default_code = 400


class UnauthorizedError(ApiError):
    """401: the server does not know who is asking."""

    default_reason = "Unauthorized"
    default_code = 401


class ForbiddenError(ApiError):
    """403: the server knows who is asking, and it is not allowed."""

    default_reason = "Forbidden"
    default_code = 403


class NotFoundError(ApiError):
    """404: no such object (`KindNotServedError` is for no such kind)."""

    default_reason = "NotFound"
    default_code = 404


class ConflictError(ApiError):
    """409: the object has changed since it was read, or another field manager owns a field."""

    default_reason = "Conflict"
    default_code = 409


class AlreadyExistsError(ConflictError):
    """409 on create: the name is taken."""

    default_reason = "AlreadyExists"


class ExpiredError(ApiError):
    """410: the resource version or the continue token is too old; list again."""

    default_reason = "Expired"
    default_code = 410


class InvalidError(ApiError):
    """422: the object was understood and refused; `causes` name the fields."""

    default_reason = "Invalid"
    default_code = 422


class TooManyRequestsError(ApiError):
    """429: slow down, for `retry_after_seconds` if given."""

    default_reason = "TooManyRequests"
    default_code = 429


class ServerError(ApiError):
    """5xx: the server failed; the same request may succeed later."""

    default_reason = "InternalError"
    default_code = 500


def format_error(error: BaseException) -> str:
    """What an error says to a person: konverge's own speak for themselves, any other shows its type as well.

    The text of a ``KeyError`` is only the key, that of a failed ``assert`` nothing at all. It never raises, and of a
    text that nobody could read it shows the beginning: conditions and logs repeat it with each try.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # an author's class may have any __str__
        text = "its text cannot be read"
    text = shorten(text, _MAX_TEXT_LENGTH)
    text = text.encode(errors="replace").decode()  # half a character cannot be sent, nor written to a log
    if isinstance(error, KonvergeError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def format_error_with_request(error: KonvergeError) -> str:
    """Describe an error, with the request that the server refused where it comes from one."""
    refusal = next((cause for cause in iter_causes(error) if isinstance(cause, ApiError) and cause.request), None)
    text = format_error(error)
    return text if refusal is None else f"{refusal.request} was answered with HTTP {refusal.code}: {text}"


def iter_causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, each once: an author's code may raise an error from itself."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequestError,
    "Unauthorized": UnauthorizedError,
    "Forbidden": ForbiddenError,
    "NotFound": NotFoundError,
    "Conflict": ConflictError,
    "AlreadyExists": AlreadyExistsError,
    "Expired": ExpiredError,
    "Gone": ExpiredError,
    "Invalid": InvalidError,
    "TooManyRequests": TooManyRequestsError,
    "InternalError": ServerError,
    "ServiceUnavailable": ServerError,
    "Timeout": ServerError,
    "ServerTimeout": ServerError,
}
_BY_CODE: dict[int, type[ApiError]] = {
    kind.default_code: kind
    for kind in (
        BadRequestError,
        UnauthorizedError,
        ForbiddenError,
        NotFoundError,
        ConflictError,
        ExpiredError,
        InvalidError,
        TooManyRequestsError,
    )
}
