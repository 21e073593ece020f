"""In which words a failure tells what it is about: the source of content, and a name as it was written. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge_resolution.errors import ResolutionError
from konverge_resolution.reference import Parameters
from konverge_resolution.resolved_content import Provenance

__all__ = ["name_revision_in_errors", "name_source_in_errors"]

_MOST_SHOWN, _LONGEST_NAME, _SHORTEST_PIN = 1000, 120, 40


@contextmanager
def name_source_in_errors(source: Provenance) -> Iterator[None]:
    """Say of a failure in the block whose content it is, where that can be shown.

    Args:
        source: Where the content came from.
    """
    try:
        yield
    except ResolutionError as error:
        shown = str(source)
        if not shown.isprintable() or len(shown) > _MOST_SHOWN:
            raise
        raise error.with_message(f"{shown}: {error.message}") from None


@contextmanager
def name_revision_in_errors(asked: Parameters, pinned: Parameters) -> Iterator[None]:
    """Have a failure in the block name a commit or a digest as it was written, too: who asks knows no other name.

    Args:
        asked: The parameters as they were written.
        pinned: What they are now.
    """
    try:
        yield
    except ResolutionError as error:
        message = error.message
        for name, value in asked.items():
            found = pinned.get(name)
            if not isinstance(value, str) or not isinstance(found, str) or found == value:
                continue
            # A version of a few letters can stand in a message for something else.
            if len(found) >= _SHORTEST_PIN and len(value) <= _LONGEST_NAME and value.isprintable():
                message = message.replace(found, f"{value} ({found})")
        raise error.with_message(message) from None
