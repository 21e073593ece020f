"""Field paths in the definition of a custom resource: the scale subresource and the selectable fields."""

from __future__ import annotations

import re
from dataclasses import dataclass

from konverge._internal.kube import Object

__all__ = ["Scale", "find_field", "validate_scale", "validate_selectable_fields"]

_STEP = re.compile(r"\.([A-Za-z0-9_-]+)")
_PATH = re.compile(rf"(?:{_STEP.pattern})+")
# Limit of the API server for one version.
_MAX_SELECTABLE = 8


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of the ``scale`` subresource, for ``kubectl scale`` and autoscalers.

    Args:
        replicas: The desired number, an integer under ``.spec``.
        status_replicas: The actual number, an integer under ``.status``.
        label_selector: The label selector of the replicas as a string under ``.status`` or ``.spec``, which a
            HorizontalPodAutoscaler requires (default: none).
    """

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ""

    def to_manifest(self) -> Object:
        """Return the subresource in the form of the definition."""
        manifest: Object = {"specReplicasPath": self.replicas, "statusReplicasPath": self.status_replicas}
        if self.label_selector:
            manifest["labelSelectorPath"] = self.label_selector
        return manifest


def find_field(schema: Object, path: str) -> Object | None:
    """Return the schema of the field at a path such as ``.spec.replicas``; None without a valid path or field."""
    if not _PATH.fullmatch(path):
        return None
    found: Object | None = schema
    for step in _STEP.findall(path):
        found = found.get("properties", {}).get(step) if found is not None else None
    return found


def validate_scale(scale: Scale, schema: Object) -> list[str]:
    """Return the errors of the paths of a scale subresource, one sentence each."""
    wanted: list[tuple[str, str, tuple[str, ...], str]] = [
        ("replicas", scale.replicas, (".spec.",), "integer"),
        ("status_replicas", scale.status_replicas, (".status.",), "integer"),
    ]
    if scale.label_selector:
        wanted.append(("label_selector", scale.label_selector, (".status.", ".spec."), "string"))
    mistakes = []
    for name, path, roots, kind in wanted:
        found = find_field(schema, path)
        if not path.startswith(roots):
            mistakes.append(f"scale {name}: expected a path that begins with {' or '.join(roots)}, found {path!r}")
        elif found is None or found.get("type") != kind:
            actual = "no such field" if found is None else f"a field of type {found.get('type', 'any')}"
            mistakes.append(f"scale {name}: expected {path} to be a declared field of type {kind}, found {actual}")
    return mistakes


def validate_selectable_fields(paths: tuple[str, ...], schema: Object) -> list[str]:
    """Return the errors of the selectable fields, one sentence each."""
    mistakes = []
    for path in paths:
        found = find_field(schema, path)
        if found is None or found.get("type") not in ("string", "integer", "boolean"):
            actual = "no such field" if found is None else f"a field of type {found.get('type', 'any')}"
            mistakes.append(f"selectable field {path}: expected a declared string, integer or boolean, found {actual}")
    if len(paths) > _MAX_SELECTABLE:
        mistakes.append(f"selectable fields: expected at most {_MAX_SELECTABLE}, found {len(paths)}")
    if len(set(paths)) < len(paths):
        mistakes.append("selectable fields: expected each path once, found one twice")
    return mistakes
