"""Applies that change an object only as it was read: of two requests with different values, the server accepts one.

A request can arrive late: after a timeout, or after a pause of the process. An unguarded apply would then replace
values that are in use. So each apply of generated values names the version that was read.
"""

from __future__ import annotations

from konverge._internal.kube import Object
from konverge.errors import ConflictError

__all__ = ["guard_apply"]

# The API server ignores the version of an object that does not exist, and refuses any version but the present one of an
# object that exists. No object has this version, so that the apply can only create.
_CREATE_ONLY = {"resourceVersion": "1"}


def guard_apply(obj: Object, live: Object | None, decided_on: str | None = None) -> Object:
    """Return the object for an apply that fails with a conflict if the object changed since it was read.

    Args:
        obj: The desired object.
        live: The object as it was read from the server; None if it did not exist.
        decided_on: The version of the object for which the values were made; empty if it did not exist, None for that
            of the object that was read.

    Raises:
        konverge.errors.ConflictError: The object changed since the decision.
    """
    if decided_on is not None and decided_on != (live["metadata"].get("resourceVersion", "") if live else ""):
        raise ConflictError("the object changed since its values were made")
    if live is None:
        guard = _CREATE_ONLY
    else:
        # Without the UID, the server would create an object that was deleted meanwhile.
        guard = {name: live["metadata"][name] for name in ("uid", "resourceVersion") if live["metadata"].get(name)}
    return {**obj, "metadata": {**obj["metadata"], **guard}}
