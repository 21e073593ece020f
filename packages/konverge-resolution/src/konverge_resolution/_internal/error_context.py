"""Context that is added to error messages: the source of the content, and revisions as the user wrote them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolved_content import Provenance

__all__ = ["name_revision_in_errors", "name_source_in_errors"]

_MAX_SOURCE, _LONGEST_NAME, _SHORTEST_PIN = 1000, 120, 40


@contextmanager
def name_source_in_errors(source: Provenance) -> Iterator[None]:
    """Prefix errors of the block with the source of the content, if it can be printed.

    Args:
        source: The source of the content.
    """
    try:
        yield
    except ResolutionError as error:
        place = str(source)
        if not place.isprintable() or len(place) > _MAX_SOURCE:
            raise
        raise error.with_message(f"{place}: {error.message}") from None


@contextmanager
def name_revision_in_errors(asked: Parameters, pinned: Parameters) -> Iterator[None]:
    """Add the revision as the user wrote it to errors that name its commit or digest.

    Args:
        asked: The parameters as the user wrote them.
        pinned: The pinned parameters.
    """
    try:
        yield
    except ResolutionError as error:
        message = error.message
        for name, value in asked.items():
            pin = pinned.get(name)
            if not isinstance(value, str) or not isinstance(pin, str) or pin == value:
                continue
            # A short version can occur in a message with another meaning.
            if len(pin) >= _SHORTEST_PIN and len(value) <= _LONGEST_NAME and value.isprintable():
                message = message.replace(pin, f"{value} ({pin})")
        raise error.with_message(message) from None
