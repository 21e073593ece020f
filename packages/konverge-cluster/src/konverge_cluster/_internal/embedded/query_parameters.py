"""Query parameters of lists, watches, writes and deletes, parsed and validated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge.errors import ApiError, BadRequestError
from konverge_cluster._internal.embedded.deletion import Propagation, parse_propagation
from konverge_cluster._internal.embedded.object_decoding import Strictness
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_forbidden,
    field_not_supported,
    field_required,
    field_too_long,
    new_invalid,
    quote,
)

__all__ = ["DeleteParameters", "ListParameters", "WriteParameters", "is_true", "parse_integer", "parse_revision"]

WriteOptionsKind: TypeAlias = Literal["CreateOptions", "UpdateOptions", "PatchOptions"]

_NO_MATCH_OF_TOKEN = "resourceVersionMatch is forbidden when continue is provided"
_MANAGER_LIMIT = 128
# The server splits a larger page.
_LARGEST_PAGE = 10_000
_INTEGER = re.compile(r"-?[0-9]+")
# More digits exceed a 64-bit number, and far more exceed Python's limit for integers.
_DIGITS = 19
_STRICTNESS: dict[str, Strictness] = {"": "Warn", "Ignore": "Ignore", "Warn": "Warn", "Strict": "Strict"}


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Return True if a parameter has a true value."""
    return query.get(name, "").lower() in ("true", "1", "t")


def parse_integer(query: Mapping[str, str], name: str) -> int | None:
    """Return a numeric parameter; None if it is absent.

    Raises:
        BadRequestError: The value is not a number.
    """
    text = query.get(name, "")
    if not text:
        return None
    if not _INTEGER.fullmatch(text):
        raise BadRequestError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax")
    if len(text) > _DIGITS:
        raise BadRequestError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")
    return int(text)


def parse_revision(query: Mapping[str, str], *, is_list: bool = False) -> int | None:
    """Return the requested resourceVersion; None if it is absent.

    Raises:
        ApiError: The value is not a number. For a list this is an error of the client, otherwise one of the server.
    """
    text = query.get("resourceVersion", "")
    if not text:
        return None
    if not text.isdigit() or not text.isascii() or len(text) > _DIGITS:
        quoted_text = quote(text)
        why = "value out of range" if text.isdigit() and text.isascii() else "invalid syntax"
        message = f"resourceVersion: Invalid value: {quoted_text}: strconv.ParseUint: parsing {quoted_text}: {why}"
        if is_list:
            raise BadRequestError(f"invalid resource version: {message}")
        raise ApiError(message, reason="", code=500)
    return int(text)


@dataclass(frozen=True, slots=True)
class ListParameters:
    """The parameters of a list or a watch.

    Attributes:
        label_selector: The label selector as text.
        field_selector: The field selector as text.
        revision: The requested resourceVersion; None for none.
        match: The ``resourceVersionMatch``.
        limit: The size of a page; zero for no limit.
        token: The token of the next page.
        timeout_seconds: The maximum duration of a watch in seconds; None if absent.
        bookmarks: True if the client accepts bookmarks.
        initial_events: True if a watch begins with the current objects and marks their end.
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
        """Parse the query parameters.

        Raises:
            ApiError: A parameter is invalid, or two contradict each other.
        """
        match = query.get("resourceVersionMatch", "")
        initial = is_true(query, "sendInitialEvents") if "sendInitialEvents" in query else None
        errors = _validate_watch(query, match, initial) if is_watch else _validate_list(query, match, initial)
        if errors:
            raise new_invalid("meta.k8s.io", "ListOptions", "", errors)
        return cls(
            label_selector=query.get("labelSelector", ""),
            field_selector=query.get("fieldSelector", ""),
            revision=parse_revision(query, is_list=not is_watch),
            match=match,
            limit=min(max(0, parse_integer(query, "limit") or 0), _LARGEST_PAGE),
            token=query.get("continue", ""),
            timeout_seconds=parse_integer(query, "timeoutSeconds"),
            bookmarks=is_true(query, "allowWatchBookmarks"),
            initial_events=initial,
        )


def _validate_watch(query: Mapping[str, str], match: str, initial: bool | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if initial is not None and match != "NotOlderThan":
        message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        errors.append(field_forbidden("resourceVersionMatch", message))
    if initial is None and match:
        message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(field_forbidden("resourceVersionMatch", message))
    if match and match != "NotOlderThan":
        errors.append(field_not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
    if query.get("continue"):
        errors.append(field_forbidden("resourceVersionMatch", _NO_MATCH_OF_TOKEN))
    return errors


def _validate_list(query: Mapping[str, str], match: str, initial: bool | None) -> list[FieldError]:
    errors: list[FieldError] = []
    version = query.get("resourceVersion", "")
    if match:
        if not version:
            message = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(field_forbidden("resourceVersionMatch", message))
        if query.get("continue"):
            errors.append(field_forbidden("resourceVersionMatch", _NO_MATCH_OF_TOKEN))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(field_not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and version == "0":
            message = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(field_forbidden("resourceVersionMatch", message))
    if initial is not None:
        errors.append(field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


@dataclass(frozen=True, slots=True)
class WriteParameters:
    """The parameters of a write.

    Attributes:
        manager: The field manager; empty if absent.
        dry_run: True if the result is not stored.
        strictness: The handling of unknown fields.
        force: True if an apply overrides conflicts.
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
        """Parse the query parameters.

        Raises:
            InvalidError: A parameter has an invalid value.
        """
        manager, dry_run = query.get("fieldManager", ""), query.get("dryRun", "")
        validation = query.get("fieldValidation", "")
        errors = []
        if options == "PatchOptions":
            if is_apply and not manager:
                errors.append(field_required("fieldManager", "is required for apply patch"))
            if not is_apply and "force" in query:
                errors.append(field_forbidden("force", "may not be specified for non-apply patch"))
        if len(manager) > _MANAGER_LIMIT:
            errors.append(field_too_long("fieldManager", _MANAGER_LIMIT))
        errors += _validate_dry_run(dry_run)
        if validation not in _STRICTNESS:
            errors.append(field_not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
        if errors:
            raise new_invalid("meta.k8s.io", options, "", errors)
        return cls(manager, dry_run == "All", _STRICTNESS[validation], is_true(query, "force"))


def _validate_dry_run(dry_run: Any) -> list[FieldError]:
    return [field_not_supported("dryRun", [dry_run], ("All",))] if dry_run not in ("", "All") else []


@dataclass(frozen=True, slots=True)
class DeleteParameters:
    """The parameters of a delete: the body takes precedence over the query.

    Attributes:
        propagation: The handling of dependents; None for the default.
        grace_seconds: The grace period of a pod in seconds; None for the period from its spec.
        uid: The required UID; empty for any.
        resource_version: The required resourceVersion; empty for any.
        dry_run: True if the result is not stored.
    """

    propagation: Propagation | None
    grace_seconds: int | None
    uid: str
    resource_version: str
    dry_run: bool

    @classmethod
    def parse(cls, query: Mapping[str, str], body: Any) -> DeleteParameters:
        """Parse the query parameters and the body.

        Args:
            query: The query parameters.
            body: The decoded ``DeleteOptions``; None for no body.

        Raises:
            ApiError: A parameter has an invalid value.
        """
        options = body if isinstance(body, Mapping) else {}
        if body is not None and not isinstance(body, Mapping):
            raise BadRequestError("the body of a delete is DeleteOptions")
        guards = options.get("preconditions")
        guards = guards if isinstance(guards, Mapping) else {}
        listed = options.get("dryRun") or []
        dry_run = query.get("dryRun") or (listed[0] if isinstance(listed, list) and listed else "")
        errors = _validate_dry_run(dry_run)
        if errors:
            raise new_invalid("meta.k8s.io", "DeleteOptions", "", errors)
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
