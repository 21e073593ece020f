"""Where a Secret's values are, and an object without them. Pure."""

from __future__ import annotations

from typing import Any

__all__ = ["LAST_APPLIED", "SECRET_FIELDS", "holds_secret", "redact_secret_values"]

SECRET_FIELDS = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps the whole object, a Secret's values included."""


def redact_secret_values(value: Any, placeholder: str) -> Any:
    """The value without the values of the Secrets that it is or holds: a List's items, another object's template.

    Args:
        value: Anything JSON-shaped; it stays as it is.
        placeholder: What stands for each value.
    """
    if isinstance(value, list):
        return [redact_secret_values(item, placeholder) for item in value]
    if not isinstance(value, dict):
        return value
    if not (value.get("kind") == "Secret" and value.get("apiVersion") == "v1"):
        return {key: redact_secret_values(item, placeholder) for key, item in value.items()}
    found = dict(value)
    for field in SECRET_FIELDS:
        if found.get(field):
            entries = found[field]
            found[field] = dict.fromkeys(entries, placeholder) if isinstance(entries, dict) else placeholder
    metadata = found.get("metadata")
    if isinstance(metadata, dict) and LAST_APPLIED in (annotations := metadata.get("annotations") or {}):
        found["metadata"] = {**metadata, "annotations": {**annotations, LAST_APPLIED: placeholder}}
    return found


def holds_secret(value: Any) -> bool:
    """Tell whether the value is a Secret or holds one: as a List's item, or as another object's template."""
    if isinstance(value, list):
        return any(map(holds_secret, value))
    if not isinstance(value, dict):
        return False
    return (value.get("kind") == "Secret" and value.get("apiVersion") == "v1") or any(map(holds_secret, value.values()))
