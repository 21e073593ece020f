"""The author's functions outside of a reconcile, with the time limit of all author functions.

Predicates, mapping functions and index functions run in the event loop for each change: one that never returns would
stop the whole operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from konverge._internal.component import TimeLimit, call_with_limit
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.runtime.changes import Change, MapToOwners
from konverge._internal.runtime.event_router import MAX_MAPPED, WatchedKind

__all__ = ["limit_function", "limit_indexes", "limit_watch"]

T = TypeVar("T")


def limit_function(limit: TimeLimit, function: Callable[..., T] | None) -> Callable[..., T] | None:
    """Return the function with the limit for each call; None stays None.

    The result raises `konverge.errors.FunctionTimeoutError`.
    """
    if function is None:
        return None
    limited = function

    def call(*args: object) -> T:
        return call_with_limit(limit, limited, *args)

    return call


def limit_watch(limit: TimeLimit, watch: WatchedKind) -> WatchedKind:
    """Return the watch with the limit for its predicate, and for all owners of one change together."""
    return replace(watch, owners_of=_limit_mapping(limit, watch.owners_of), when=limit_function(limit, watch.when))


def limit_indexes(
    limit: TimeLimit, indexes: Mapping[tuple[GroupVersionKind, str], Callable[[Object], Sequence[str]]]
) -> dict[tuple[GroupVersionKind, str], Callable[[Object], Sequence[str]]]:
    """Return the index functions with the limit."""
    return {key: limit_function(limit, function) or function for key, function in indexes.items()}


def _limit_mapping(limit: TimeLimit, owners_of: MapToOwners) -> MapToOwners:
    def list_owners(change: Change) -> Iterator[ObjectKey]:
        found: list[Any] = []
        failure: Exception | None = None
        try:
            call_with_limit(limit, _collect, owners_of, change, found)
        except Exception as error:  # noqa: BLE001  # author code; raised below
            failure = error
        yield from found  # what the function named before it failed counts
        if failure is not None:
            raise failure

    return list_owners


def _collect(owners_of: MapToOwners, change: Change, found: list[Any]) -> None:
    for key in owners_of(change):
        found.append(key)
        if len(found) > MAX_MAPPED:
            return
