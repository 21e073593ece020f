"""How the failure of an author's function is reported: with the name of what failed, and without a Secret's values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge.errors import FunctionInterrupt, KonvergeError, TerminalError, format_error

__all__ = ["wrap_author_errors"]


@contextmanager
def wrap_author_errors(subject: str, *, is_withheld: bool = False) -> Iterator[None]:
    """Turn whatever the body raises into a `KonvergeError` that says what failed, with the original as its cause.

    A `TerminalError` stays one, so that the key is still not retried.

    Args:
        subject: For example ``failed to mutate resource v1/ConfigMap/default/web``.
        is_withheld: The body works on a Secret. An error from outside konverge may quote a value: it shows by its type
            alone, and without a cause, because a log prints causes. Errors of konverge's own tree hold no values.
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
    except BaseException as error:  # an extension in Rust panics with one of its own, and a library may exit
        if is_withheld:
            raise KonvergeError(
                f"{subject}: {type(error).__name__} (its text is withheld: it may quote the Secret)"
            ) from None
        raise KonvergeError(f"{subject}: {format_error(error)}") from error
