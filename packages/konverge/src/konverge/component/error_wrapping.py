"""How an error of one step becomes the component's: named by step and resource, and joined with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from konverge.errors import ApiError, ReconcileError, TerminalError, format_error
from konverge.kube import Object
from konverge.kube.server_text_redaction import withhold_server_texts, withhold_text
from konverge.primitives.resource_protocol import Resource, handles_secret

__all__ = ["join_errors", "withhold_secret_errors", "wrap_errors"]


class wrap_errors:
    """Turn whatever goes wrong in the block into a `ReconcileError` that names the step and the resource.

    The block calls the author's code (guards, extractors, mutations, handlers) or the cluster: any exception is the
    component's failure, reported in its condition, and never the process'. A `TerminalError` stays one.

    A class, because a pass enters dozens of these blocks: a generator would take several times as long.

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
        told = format_error(error)
        # A primitive that renders its object already says which resource and which mutation failed.
        message = told if told.startswith(self._step) else f"{self._step} {self._identity}: {told}"
        raise _build_error(error, message) from error


@contextmanager
def withhold_secret_errors(resource: Resource, sent: Object | None = None) -> Iterator[None]:
    """Have nothing shown of what a server says within the block, if the resource handles values of a Secret.

    A `konverge.client.Client` withholds errors and warnings then. The errors of any other client are filtered here.

    Args:
        resource: Whom the requests are about.
        sent: What is sent.
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
    """One error that says what all of them say; the first that may be worth another try is its cause."""
    if len(errors) == 1:
        return errors[0]
    first = next((error for error in errors if not isinstance(error, TerminalError)), errors[0])
    error = _build_error(first, "; ".join(str(each) for each in errors))
    error.__cause__ = first
    return error


def _build_error(error: Exception, message: str) -> ReconcileError:
    return TerminalError(message) if isinstance(error, TerminalError) else ReconcileError(message)
