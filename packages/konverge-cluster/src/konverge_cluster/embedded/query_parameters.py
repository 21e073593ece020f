"""Query parameters, read and checked: the options of lists, watches, writes and deletes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge.errors import ApiError, BadRequestError
from konverge_cluster.embedded.deletion import Propagation, parse_propagation
from konverge_cluster.embedded.object_decoding import Strictness
from konverge_cluster.embedded.validation.field_errors import (
    FieldError,
    field_forbidden,
    field_not_supported,
    field_required,
    field_too_long,
    new_invalid,
    quote,
)

__all__ = ["DeleteParameters", "ListParameters", "WriteParameters", "is_true", "parse_integer"]

WriteOptionsKind: TypeAlias = Literal["CreateOptions", "UpdateOptions", "PatchOptions"]

_MANAGER_LIMIT = 128
# A larger page is given in several.
_LARGEST_PAGE = 10_000
_INTEGER = re.compile(r"-?[0-9]+")
# More of them are no 64-bit number, and far more are none that Python would read.
_DIGITS = 19
_STRICTNESS: dict[str, Strictness] = {"": "Warn", "Ignore": "Ignore", "Warn": "Warn", "Strict": "Strict"}


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Tell whether a parameter is set to something that means yes."""
    return query.get(name, "").lower() in ("true", "1", "t")


def parse_integer(query: Mapping[str, str], name: str) -> int | None:
    """A parameter that is a number; None when it is not there.

    Raises:
        BadRequestError: It is no number.
    """
    text = query.get(name, "")
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise BadRequestError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    if len(text) > _DIGITS:
        raise BadRequestError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return int(text)


def _parse_revision(query: Mapping[str, str], *, is_watch: bool) -> int | None:
    text = query.get("resourceVersion", "")
    if not text:
        return None
    if not text.isdigit() or not text.isascii() or len(text) > _DIGITS:
        quoted_text = quote(text)
        why = "value out of range" if text.isdigit() and text.isascii() else "invalid syntax"
        told = f"resourceVersion: Invalid value: {quoted_text}: strconv.ParseUint: parsing {quoted_text}: {why}"
        # The real server answers a watch with an error of its own here.
        raise ApiError(told, reason="", code=500) if is_watch else BadRequestError(f"invalid resource version: {told}")
    return int(text)


@dataclass(frozen=True, slots=True)
class ListParameters:
    """How a list or a watch is wanted.

    Attributes:
        label_selector: As it was sent.
        field_selector: As it was sent.
        revision: The resource version that was named, None for none.
        match: How it is meant.
        limit: The size of a page, zero for no limit.
        token: Where to go on.
        timeout_seconds: How long a watch may take, None when that is not said.
        bookmarks: Whether bookmarks are welcome.
        initial_events: Whether a watch begins with the present state and says when that was all.
    """

    label_selector: str
    field_selector: str
    revision: int | None
    match: str
    limit: int
    token: str
    timeout_seconds: int | None
    bookmarks: bool
    initial_events: bool | None

    @classmethod
    def parse(cls, query: Mapping[str, str], *, is_watch: bool) -> ListParameters:
        """Read them.

        Raises:
            ApiError: One has another form, or two do not go together.
        """
        match = query.get("resourceVersionMatch", "")
        initial = is_true(query, "sendInitialEvents") if "sendInitialEvents" in query else None
        mistakes = _validate_watch(match, initial) if is_watch else _validate_list(query, match, initial)
        if mistakes:
            raise new_invalid("meta.k8s.io", "ListOptions", "", mistakes)
        return cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            revision=_parse_revision(query, is_watch=is_watch),
            match=match,
            limit=min(max(0, parse_integer(query, "limit") or 0), _LARGEST_PAGE),
            token=query.get("continue", ""),
            timeout_seconds=parse_integer(query, "timeoutSeconds"),
            bookmarks=is_true(query, "allowWatchBookmarks"),
            initial_events=initial,
        )


def _validate_watch(match: str, initial: bool | None) -> list[FieldError]:
    if initial is not None and match != "NotOlderThan":
        told = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        return [field_forbidden("resourceVersionMatch", told)]
    if initial is None and match:
        told = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        return [field_forbidden("resourceVersionMatch", told)]
    return []


def _validate_list(query: Mapping[str, str], match: str, initial: bool | None) -> list[FieldError]:
    if initial is not None:
        return [field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")]
    if not match:
        return []
    version = query.get("resourceVersion", "")
    if not version:
        told = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        return [field_forbidden("resourceVersionMatch", told)]
    if match not in ("Exact", "NotOlderThan"):
        return [field_not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", ""))]
    if match == "Exact" and version == "0":
        told = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        return [field_forbidden("resourceVersionMatch", told)]
    if query.get("continue"):
        return [field_forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")]
    return []


@dataclass(frozen=True, slots=True)
class WriteParameters:
    """How a write is meant.

    Attributes:
        manager: The field manager, empty when none was named.
        dry_run: Whether it is only to be tried.
        strictness: What becomes of unknown fields.
        force: For an apply: whether conflicts are overridden.
    """

    manager: str
    dry_run: bool
    strictness: Strictness
    force: bool

    @classmethod
    def parse(
        cls,
        query: Mapping[str, str],
        options: Literal["CreateOptions", "UpdateOptions", "PatchOptions"],
        *,
        is_apply: bool = False,
    ) -> WriteParameters:
        """Read them.

        Raises:
            InvalidError: One has another value than it may.
        """
        manager, dry_run = query.get("fieldManager", ""), query.get("dryRun", "")
        validation = query.get("fieldValidation", "")
        mistakes = []
        if options == "PatchOptions":
            if is_apply and not manager:
                mistakes.append(field_required("fieldManager", "is required for apply patch"))
            if not is_apply and "force" in query:
                mistakes.append(field_forbidden("force", "may not be specified for non-apply patch"))
        if len(manager) > _MANAGER_LIMIT:
            mistakes.append(field_too_long("fieldManager", _MANAGER_LIMIT))
        mistakes += _validate_dry_run(dry_run)
        if validation not in _STRICTNESS:
            mistakes.append(field_not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
        if mistakes:
            raise new_invalid("meta.k8s.io", options, "", mistakes)
        return cls(manager, dry_run == "All", _STRICTNESS[validation], is_true(query, "force"))


def _validate_dry_run(dry_run: Any) -> list[FieldError]:
    return [field_not_supported("dryRun", [dry_run], ("All",))] if dry_run not in ("", "All") else []


@dataclass(frozen=True, slots=True)
class DeleteParameters:
    """How a delete is meant: what the query says, and what the body says over it.

    Attributes:
        propagation: What becomes of dependents, None for what is usual.
        grace_seconds: How long a pod may take, None for what it asks for.
        uid: Only the object of this UID; empty for any.
        resource_version: Only the object as it is at this version; empty for any.
        dry_run: Whether it is only to be tried.
    """

    propagation: Propagation | None
    grace_seconds: int | None
    uid: str
    resource_version: str
    dry_run: bool

    @classmethod
    def parse(cls, query: Mapping[str, str], body: Any) -> DeleteParameters:
        """Read them.

        Args:
            query: The query.
            body: The decoded ``DeleteOptions``, None for no body.

        Raises:
            ApiError: One has another value than it may.
        """
        options = body if isinstance(body, Mapping) else {}
        if body is not None and not isinstance(body, Mapping):
            raise BadRequestError("the body of a delete is DeleteOptions")
        guards = options.get("preconditions")
        guards = guards if isinstance(guards, Mapping) else {}
        listed = options.get("dryRun") or []
        dry_run = query.get("dryRun") or (listed[0] if isinstance(listed, list) and listed else "")
        mistakes = _validate_dry_run(dry_run)
        if mistakes:
            raise new_invalid("meta.k8s.io", "DeleteOptions", "", mistakes)
        grace = options.get("gracePeriodSeconds")
        orphans = options.get("orphanDependents")
        propagation = parse_propagation(str(options.get("propagationPolicy") or query.get("propagationPolicy") or ""))
        if propagation is None and isinstance(orphans, bool):
            propagation = "Orphan" if orphans else "Background"
        return cls(
            propagation=propagation,
            grace_seconds=grace if isinstance(grace, int) else parse_integer(query, "gracePeriodSeconds"),
            uid=str(guards.get("uid") or ""),
            resource_version=str(guards.get("resourceVersion") or ""),
            dry_run=dry_run == "All",
        )
