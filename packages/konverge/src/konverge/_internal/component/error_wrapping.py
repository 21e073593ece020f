"""Conversion of errors into the component's error: with step and resource, and joined with other errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from konverge._internal.kube import Object
from konverge._internal.kube.server_text_redaction import withhold_server_texts, withhold_text
from konverge._internal.primitives.resource_protocol import Resource, handles_secret
from konverge.errors import ApiError, ReconcileError, TerminalError, format_error

__all__ = ["join_errors", "withhold_secret_errors", "wrap_errors"]


class wrap_errors:
    """Context manager that turns an exception of the block into a `ReconcileError` with the step and the resource.

    The block calls author code (guards, extractors, mutations, handlers) or the cluster. Any exception is a failure of
    the component, which its condition reports, and never of the process. A `TerminalError` stays one.

    It is a class, because a reconcile enters dozens of these blocks: a generator takes several times as long.

    Args:
        step: The step, for example "failed to apply resource".
        identity: The resource.
    """

    __slots__ = ("_identity", "_step")

    def __init__(self, step: str, identity: str) -> None:
        self._step = step
        self._identity = identity

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception):
            return
        problem = format_error(error)
        # The error of a primitive that renders its object already names the resource and the mutation.
        message = problem if problem.startswith(self._step) else f"{self._step} {self._identity}: {problem}"
        raise _build_error(error, message) from error


@contextmanager
def withhold_secret_errors(resource: Resource, sent: Object | None = None) -> Iterator[None]:
    """Withhold texts of the server within the block if the resource handles values of a Secret.

    A `konverge.client.Client` withholds errors and warnings itself. This block redacts the errors of any other client.

    Args:
        resource: The resource of the requests.
        sent: The object that is sent.
    """
    if not handles_secret(resource):
        yield
        return
    try:
        with withhold_server_texts():
            yield
    except ApiError as error:
        raise withhold_text(error, sent=sent) from None


def join_errors(errors: Sequence[ReconcileError]) -> ReconcileError:
    """Join errors into one; its cause is the first error that can be retried, or the first error."""
    if len(errors) == 1:
        return errors[0]
    first = next((error for error in errors if not isinstance(error, TerminalError)), errors[0])
    error = _build_error(first, "; ".join(str(reconcile_error) for reconcile_error in errors))
    error.__cause__ = first
    return error


def _build_error(error: Exception, message: str) -> ReconcileError:
    return TerminalError(message) if isinstance(error, TerminalError) else ReconcileError(message)
