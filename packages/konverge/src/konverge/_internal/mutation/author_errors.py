"""Errors of the author's functions: reported with a subject and without the values of a Secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge.errors import FunctionInterrupt, KonvergeError, TerminalError, format_error

__all__ = ["wrap_author_errors"]


@contextmanager
def wrap_author_errors(subject: str, *, is_withheld: bool = False) -> Iterator[None]:
    """Convert any exception of the body into a `KonvergeError` with the subject and with the exception as its cause.

    A `TerminalError` stays a `TerminalError`, so that the key is still not retried.

    Args:
        subject: For example ``failed to mutate resource v1/ConfigMap/default/web``.
        is_withheld: True if the body handles a Secret. An exception of another library may quote a value: only its type
            is reported, without a cause, because logs print causes. konverge's own errors contain no values.
    """
    try:
        yield
    except FunctionInterrupt as error:
        raise FunctionInterrupt(subject, *error.args).with_traceback(error.__traceback__) from None
    except TerminalError as error:
        raise TerminalError(f"{subject}: {error}") from (None if is_withheld else error)
    except KonvergeError as error:
        raise KonvergeError(f"{subject}: {error}") from (None if is_withheld else error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an extension in Rust panics with its own exception, and a library may exit
        if is_withheld:
            raise KonvergeError(
                f"{subject}: {type(error).__name__} (its text is withheld: it may quote the Secret)"
            ) from None
        raise KonvergeError(f"{subject}: {format_error(error)}") from error
