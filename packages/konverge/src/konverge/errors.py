"""The error tree: every error that a user of konverge may catch is a `KonvergeError`.

There is one class for each case that a caller handles differently. A message has the object, the expected and the found
value and, if possible, the next step. Messages never contain the value of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    "StatusNotStoredError",
    "TerminalError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UntrustedServerError",
]


_MAX_RETRY_AFTER_SECONDS = 600.0
_MAX_TEXT_LENGTH = 10_000


class KonvergeError(Exception):
    """The base class of all errors of konverge."""


class BuildError(KonvergeError):
    """A declaration is invalid; `errors` has all errors that the builder found.

    Args:
        subject: The declaration, for example ``component "frontend"``.
        errors: One sentence for each error, in the order of the declaration.
    """

    def __init__(self, subject: str, errors: Sequence[str]) -> None:
        self.subject = subject
        self.errors: tuple[str, ...] = tuple(errors)
        count = len(self.errors)
        lines = "".join(f"\n  - {mistake}" for mistake in self.errors)
        super().__init__(f"{subject} cannot be built: {count} mistake{'s' if count != 1 else ''}{lines}")


class ConfigurationError(KonvergeError):
    """A kubeconfig, an operator file or an option is invalid; the message has the position and the reason."""


class NoKubeconfigError(ConfigurationError):
    """No kubeconfig was found; the message lists the paths that were searched."""


class ReconcileError(KonvergeError):
    """The reconcile of a component failed; its condition reports the error. The queue retries after a backoff."""


class TerminalError(ReconcileError):
    """The reconcile fails until the owner or one of its objects changes; the key is not retried."""


class StatusNotStoredError(KonvergeError):
    """The server accepted a status, but stored a field of it differently or not at all.

    The usual cause is a CustomResourceDefinition that is older than the class of the status.

    Args:
        owner: The owner of the status.
        missing: The paths of fields that the server dropped.
        changed: The paths of fields that the server stored with another value or kept.
    """

    def __init__(self, owner: str, missing: tuple[str, ...], changed: tuple[str, ...]) -> None:
        problems = []
        if missing:
            problems.append(
                f"the server dropped {', '.join(missing)}: expected a CustomResourceDefinition with these fields, "
                "found one without; apply the output of konverge crd"
            )
        if changed:
            problems.append(
                f"the server stored other values of {', '.join(changed)}: expected the values that were sent; compare "
                "the CustomResourceDefinition in the cluster with the output of konverge crd"
            )
        super().__init__(f"{owner}: {'; '.join(problems)}")
        self.missing = missing
        self.changed = changed


class NotExtractedError(KonvergeError):
    """A data cell was read that no resource has filled in this reconcile.

    Args:
        name: The name of the cell.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f'data "{name}" is not extracted: no resource has filled it in this reconcile. Declare it with requires= '
            "on the resource that reads it, or read it with get(); to render without a cluster, pass its value: "
            f"preview(data={{{name!r}: ...}}), konverge preview --data"
        )


class FunctionInterrupt(BaseException):
    """An interrupt of an author function that does not return; the caller turns it into a `FunctionTimeoutError`.

    It is not an ``Exception``, so that it also ends a function that retries after any exception.

    Args:
        steps: The interrupted steps, the outermost first.
    """

    def __init__(self, *steps: str) -> None:
        super().__init__(*steps)


class FunctionTimeoutError(KonvergeError):
    """An author function exceeded its time limit and was interrupted; the message has its position."""


class DecodeError(TerminalError):
    """An object does not fit its class.

    Args:
        subject: The object, for example ``WebApp default/web``.
        path: The field that does not fit, in JSON names; empty for the object itself.
        problem: The expected and the found value.
    """

    def __init__(self, subject: str, path: str, problem: str) -> None:
        self.subject = subject
        self.path = path
        self.problem: str = f"{path}: {problem}" if path else problem
        super().__init__(f"{subject}: {self.problem}")


class ConnectionFailedError(KonvergeError):
    """The server was unreachable, closed the connection, or did not answer within the deadline.

    After this error, a write may or may not have taken place.
    """


class NotConnectedError(ConnectionFailedError):
    """No connection was opened, so nothing was sent: it is safe to repeat the request, even a write."""


class UntrustedServerError(ConnectionFailedError):
    """The TLS handshake failed: nothing was sent, and a retry fails until a certificate is replaced."""


class StartError(KonvergeError):
    """An operator could not start within its time limit; the cause is the last error of the failed step."""


class NoPermitError(KonvergeError):
    """A write was not sent, because this replica may have lost the Lease that permits it. The write is not retried."""


class KindNotServedError(KonvergeError):
    """The server does not serve this kind now: its CustomResourceDefinition is absent or its version is not served."""


class KindUnreachableError(KindNotServedError):
    """The aggregated API server of this kind's group does not answer, so it is unknown if the kind is served.

    Objects of the kind can exist. A caller that would act on their absence must wait.
    """


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of a Status' ``details.causes``: a field and its error."""

    reason: str
    message: str
    field: str = ""


class ApiError(KonvergeError):
    """The API server responded with a failure ``Status``.

    Args:
        message: The message of the server.
        reason: The machine-readable reason of the Status, for example ``Conflict``.
        code: The HTTP status code.
        details: The Status' ``details``: kind, name, causes.
        retry_after_seconds: The delay of ``Retry-After`` or ``details.retryAfterSeconds``; None without one.

    Attributes:
        request: The method and the URL of the request, without its query; empty if the error is not from a client.
        is_withheld: True if texts of the server were removed because they can contain the value of a Secret; `message`
            and `causes` have the rest.
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
        self.reason: str = self.default_reason if reason is None else reason
        self.code: int = self.default_code if code is None else code
        self.details: dict[str, Any] = dict(details or {})
        self.retry_after_seconds = retry_after_seconds
        self.request = ""

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The single errors behind the failure, in the server's order; empty if the response has none."""
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
        """True if the server refused a creation because the namespace is being deleted."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)

    def to_status(self) -> dict[str, Any]:
        """Return the failure as the ``Status`` object that an API server sends (meta/v1)."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if not self.reason:
            del status["reason"]
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retryAfterSeconds"] = int(self.retry_after_seconds)
        if details:
            status["details"] = details
        return status

    @staticmethod
    def from_status(code: int, status: Mapping[str, Any], *, retry_after_seconds: float | None = None) -> ApiError:
        """Build an error of the right class from a failure response.

        Args:
            code: The HTTP status code of the response.
            status: The decoded ``Status``; missing or wrongly typed fields are tolerated, because the response can be
                from a proxy.
            retry_after_seconds: The ``Retry-After`` header; None without one.
        """
        reason = str(status.get("reason") or "")
        kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)
        details = status.get("details")
        details = details if isinstance(details, Mapping) else {}
        if retry_after_seconds is None:
            seconds = details.get("retryAfterSeconds")
            retry_after_seconds = float(seconds) if isinstance(seconds, int | float) else None
        if retry_after_seconds is not None:
            # One wrong header must not stop a client for longer.
            retry_after_seconds = min(max(0.0, retry_after_seconds), _MAX_RETRY_AFTER_SECONDS)
        return kind(
            str(status.get("message") or f"the server answered with HTTP status {code}"),
            reason=reason or None,
            code=code,
            details=details,
            retry_after_seconds=retry_after_seconds,
        )


class BadRequestError(ApiError):
    """400: the request is malformed."""

    default_reason = "BadRequest"
    default_code = 400


class UnauthorizedError(ApiError):
    """401: the server cannot authenticate the client."""

    default_reason = "Unauthorized"
    default_code = 401


class ForbiddenError(ApiError):
    """403: the user is not allowed to send the request."""

    default_reason = "Forbidden"
    default_code = 403


class NotFoundError(ApiError):
    """404: the object does not exist (`KindNotServedError`: the kind does not exist)."""

    default_reason = "NotFound"
    default_code = 404


class ConflictError(ApiError):
    """409: the object has changed since it was read, or another field manager owns a field."""

    default_reason = "Conflict"
    default_code = 409


class AlreadyExistsError(ConflictError):
    """409 on create: an object with the name exists."""

    default_reason = "AlreadyExists"


class ExpiredError(ApiError):
    """410: the resource version or the continue token is too old; list again."""

    default_reason = "Expired"
    default_code = 410


class InvalidError(ApiError):
    """422: the object is invalid; `causes` have the fields."""

    default_reason = "Invalid"
    default_code = 422


class TooManyRequestsError(ApiError):
    """429: the client sends too many requests; it must wait for `retry_after_seconds` if given."""

    default_reason = "TooManyRequests"
    default_code = 429


class ServerError(ApiError):
    """5xx: the server failed; the same request may succeed later."""

    default_reason = "InternalError"
    default_code = 500


def format_error(error: BaseException) -> str:
    """Format an error for users: the message of a `KonvergeError`, or the type and message of any other error.

    The message of a ``KeyError`` is only the key, and that of a failed ``assert`` is empty. This function never raises.
    It truncates a long message, because conditions and logs repeat it at each retry.
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # an author's class may have any __str__
        text = "its text cannot be read"
    if len(text) > _MAX_TEXT_LENGTH:
        text = f"{text[: _MAX_TEXT_LENGTH - 1]}…"
    text = text.encode(errors="replace").decode()  # a lone surrogate cannot be encoded for a request or a log
    if isinstance(error, KonvergeError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def format_error_with_request(error: KonvergeError) -> str:
    """Format an error, with the request if the server refused one."""
    refusal = next((cause for cause in iter_causes(error) if isinstance(cause, ApiError) and cause.request), None)
    text = format_error(error)
    return text if refusal is None else f"{refusal.request} was answered with HTTP {refusal.code}: {text}"


def iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, each once: author code can raise an error from itself."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


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
