"""What a resource renders, checked: one of an author's own may answer anything."""

from __future__ import annotations

from collections.abc import Callable

from konverge.errors import ReconcileError
from konverge.kube import Object

__all__ = ["render_desired"]


def render_desired(render: Callable[[], Object]) -> Object:
    """The desired object.

    Raises:
        konverge.errors.ReconcileError: It is none. Told by type, since its content may be a Secret's.
        Exception: Whatever the resource raises.
    """
    desired: object = render()
    if not isinstance(desired, dict):
        raise ReconcileError(f"expected the desired object, found {type(desired).__name__}")
    if not isinstance(desired.get("metadata"), dict):
        raise ReconcileError("expected the desired object, found one without metadata")
    references = desired["metadata"].get("ownerReferences") or []
    if not (isinstance(references, list) and all(isinstance(found, dict) for found in references)):
        raise ReconcileError("metadata.ownerReferences: expected a list of mappings, found something else")
    return desired
