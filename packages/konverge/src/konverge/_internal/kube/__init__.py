"""The model of a Kubernetes object: identity, metadata, conditions, owner references, times. Pure.

Objects are plain JSON-shaped mappings. Objects from a server are read leniently: a field of the wrong type counts as
absent, because one malformed object must never end a watch.
"""

from konverge._internal.kube.conditions import MESSAGE_LIMIT, Condition, find_condition, remove_condition, set_condition
from konverge._internal.kube.objects import GroupVersionKind, Object, ObjectKey, RestMapping, format_identity
from konverge._internal.kube.owner_references import (
    build_owner_reference,
    find_controller,
    has_owner,
    is_deleting,
    remove_owner,
)
from konverge._internal.kube.server_text_redaction import withhold_server_texts
from konverge._internal.kube.timestamps import format_micro_time, format_time, parse_time

__all__ = [
    "MESSAGE_LIMIT",
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
