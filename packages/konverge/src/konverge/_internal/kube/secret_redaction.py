"""The fields of a Secret that hold its values, and their redaction. Pure."""

from __future__ import annotations

from typing import Any

__all__ = ["LAST_APPLIED", "SECRET_FIELDS", "holds_secret", "redact_secret_values"]

SECRET_FIELDS = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl stores the whole object, including the values of a Secret."""


def redact_secret_values(value: Any, placeholder: str) -> Any:
    """Return a copy without the values of all Secrets in it, also in the items of a List or another object's template.

    Args:
        value: Any JSON-shaped value; it stays unchanged.
        placeholder: The text that replaces each value.
    """
    if isinstance(value, list):
        return [redact_secret_values(item, placeholder) for item in value]
    if not isinstance(value, dict):
        return value
    if not (value.get("kind") == "Secret" and value.get("apiVersion") == "v1"):
        return {key: redact_secret_values(item, placeholder) for key, item in value.items()}
    secret = dict(value)
    for field in SECRET_FIELDS:
        if secret.get(field):
            entries = secret[field]
            secret[field] = dict.fromkeys(entries, placeholder) if isinstance(entries, dict) else placeholder
    metadata = secret.get("metadata")
    if isinstance(metadata, dict) and LAST_APPLIED in (annotations := metadata.get("annotations") or {}):
        secret["metadata"] = {**metadata, "annotations": {**annotations, LAST_APPLIED: placeholder}}
    return secret


def holds_secret(value: Any) -> bool:
    """Return True if the value is a Secret or contains one, as an item of a List or another object's template."""
    if isinstance(value, list):
        return any(map(holds_secret, value))
    if not isinstance(value, dict):
        return False
    return (value.get("kind") == "Secret" and value.get("apiVersion") == "v1") or any(map(holds_secret, value.values()))
