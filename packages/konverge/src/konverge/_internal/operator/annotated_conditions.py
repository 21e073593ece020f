"""Conditions of owners whose status belongs to another controller: they are in an annotation. Pure.

The annotation has the list of a status in JSON. The context of a reconcile shows it as the status of the owner, so
components, prerequisites and grace periods read and write conditions as everywhere else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge._internal.kube import Object

__all__ = ["build_annotation_name", "format_conditions", "show_conditions"]

_PREFIX = "conditions.konverge.dev"
_MESSAGE_LENGTH = 1024
# All annotations of an object have 256 KiB together, and other clients need some of it.
_MAX_BYTES = 16_384
_SHORT_LENGTH = 100


def build_annotation_name(operator: str) -> str:
    """Return the annotation with the conditions of an operator."""
    return f"{_PREFIX}/{operator}"


def show_conditions(owner: Object, annotation: str) -> Object:
    """Return a copy of the owner whose status has only the conditions of the annotation.

    An annotation that is not a list of conditions counts as an empty one: the next write replaces it. The copy has no
    generation: a Deployment gets a new one with each change of its annotations, so a condition that observes it would
    never be steady.
    """
    metadata = owner["metadata"]
    conditions = _parse_conditions((metadata.get("annotations") or {}).get(annotation))
    shown = {**owner, "metadata": {name: value for name, value in metadata.items() if name != "generation"}}
    shown.pop("status", None)
    return {**shown, "status": {"conditions": conditions}} if conditions else shown


def format_conditions(conditions: list[Any]) -> str | None:
    """Return the text of the annotation; None without conditions. Long messages are cut."""
    if not conditions:
        return None
    text = _encode(conditions, _MESSAGE_LENGTH)
    return text if len(text.encode()) <= _MAX_BYTES else _encode(conditions, _SHORT_LENGTH)


def _encode(conditions: list[Any], length: int) -> str:
    return msgspec.json.encode([_cut_message(condition, length) for condition in conditions]).decode()


def _cut_message(condition: Object, length: int) -> Object:
    message = str(condition.get("message") or "")
    return condition if len(message) <= length else {**condition, "message": message[: length - 1] + "…"}


def _parse_conditions(text: object) -> list[Object]:
    if not isinstance(text, str):
        return []
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return []
    return [entry for entry in decoded if isinstance(entry, dict)] if isinstance(decoded, list) else []
