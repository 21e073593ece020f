"""How an error of one step becomes the component's: named by step and resource, and joined with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from konverge.errors import ReconcileError

__all__ = ["failing", "joined"]


@contextmanager
def failing(what: str, identity: str) -> Iterator[None]:
    """Turn whatever goes wrong in the block into a `ReconcileError` that names the step and the resource.

    The block calls the author's code (guards, extractors, mutations, handlers) or the cluster: any exception is the
    component's failure, reported in its condition, and never the process'.
    """
    try:
        yield
    except Exception as error:
        raise ReconcileError(f"{what} {identity}: {error}") from error


def joined(errors: Sequence[ReconcileError]) -> ReconcileError:
    """One error that says what all of them say; the first is its cause."""
    if len(errors) == 1:
        return errors[0]
    error = ReconcileError("; ".join(str(each) for each in errors))
    error.__cause__ = errors[0]
    return error
