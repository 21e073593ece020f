"""What a Kubernetes object is: identity, metadata, conditions, owner references, times. Pure.

Objects are plain JSON-shaped mappings. What comes from a server is read leniently: a field of the wrong type counts as
absent, because one odd object must never end a watch.
"""

from konverge.kube.conditions import MESSAGE_LIMIT, Condition, find_condition, remove_condition, set_condition
from konverge.kube.objects import GroupVersionKind, Object, ObjectKey, ResourceMapping, identity
from konverge.kube.owners import controller_of, has_owner, is_deleting, owner_reference, without_owner
from konverge.kube.server_texts import withhold_server_texts
from konverge.kube.times import format_micro_time, format_time, parse_time

__all__ = [
    "MESSAGE_LIMIT",
    "Condition",
    "GroupVersionKind",
    "Object",
    "ObjectKey",
    "ResourceMapping",
    "controller_of",
    "find_condition",
    "format_micro_time",
    "format_time",
    "has_owner",
    "identity",
    "is_deleting",
    "owner_reference",
    "parse_time",
    "remove_condition",
    "set_condition",
    "withhold_server_texts",
    "without_owner",
]
