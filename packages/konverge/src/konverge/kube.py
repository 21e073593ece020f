"""Identity, conditions, owner references and times of Kubernetes objects."""

from __future__ import annotations

from konverge._internal.kube import (
    Condition,
    GroupVersionKind,
    Object,
    ObjectKey,
    RestMapping,
    build_owner_reference,
    find_condition,
    find_controller,
    format_identity,
    format_micro_time,
    format_time,
    has_owner,
    is_deleting,
    parse_time,
    remove_condition,
    remove_owner,
    set_condition,
    withhold_server_texts,
)

__all__ = [
    "Condition",
    "GroupVersionKind",
    "Object",
    "ObjectKey",
    "RestMapping",
    "build_owner_reference",
    "find_condition",
    "find_controller",
    "format_identity",
    "format_micro_time",
    "format_time",
    "has_owner",
    "is_deleting",
    "parse_time",
    "remove_condition",
    "remove_owner",
    "set_condition",
    "withhold_server_texts",
]
