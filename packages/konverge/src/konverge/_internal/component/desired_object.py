"""Validation of the object that a resource renders, because author code can return any value."""

from __future__ import annotations

from collections.abc import Callable

from konverge._internal.kube import Object
from konverge.errors import ReconcileError

__all__ = ["render_desired"]


def render_desired(render: Callable[[], Object]) -> Object:
    """Render the desired object.

    Raises:
        konverge.errors.ReconcileError: The result is not an object. The message shows only its type, since its content
            can be a Secret's.
        Exception: The exception of the resource.
    """
    desired: object = render()
    if not isinstance(desired, dict):
        raise ReconcileError(f"expected the desired object, found {type(desired).__name__}")
    if not isinstance(desired.get("metadata"), dict):
        raise ReconcileError("expected the desired object, found one without metadata")
    references = desired["metadata"].get("ownerReferences") or []
    if not (isinstance(references, list) and all(isinstance(entry, dict) for entry in references)):
        raise ReconcileError("metadata.ownerReferences: expected a list of mappings, found something else")
    return desired
