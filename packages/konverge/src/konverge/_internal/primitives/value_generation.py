"""The decision about the generated values of a Secret: kept, or made again, and why. Pure.

The Secret itself is the record: a value that is in it is never made again, except by a rotation. Annotations have the
time at which the values were made and the rotations that were done.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from konverge._internal.kube import Object, format_time, parse_time
from konverge.clock import Entropy

__all__ = [
    "GENERATED_AT",
    "ROTATE",
    "ROTATED",
    "ROTATION",
    "ValueGeneration",
    "ValuePlan",
    "build_stamps",
    "compute_rotation_time",
    "find_rotation_request",
    "read_value",
]

GENERATED_AT = "konverge.dev/generated-at"
"""Annotation of a Secret: the time at which its values were made."""

ROTATION = "konverge.dev/rotation"
"""Annotation of a Secret: the text of ``rotation=`` with which its values were made."""

ROTATE = "konverge.dev/rotate"
"""Annotation of a Secret, for users: any new text makes new values once."""

ROTATED = "konverge.dev/rotated"
"""Annotation of a Secret: a hash of the last text of `ROTATE` that made new values."""

_HASH_LENGTH = 12


@dataclass(frozen=True, slots=True)
class ValuePlan:
    """What happens to the values of one Secret in this reconcile.

    Attributes:
        kept: The values that stay, by key.
        missing: The keys of the values to make.
        reason: The reason why values that exist are made again; empty if none exists.
        due: The time at which the values are due for rotation; None for never.
        stamps: The annotations that go with the kept values.
        notices: Reports about kept values, without the values.
    """

    kept: Mapping[str, bytes] = field(repr=False)
    missing: tuple[str, ...] = ()
    reason: str = ""
    due: datetime | None = None
    stamps: Mapping[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


class ValueGeneration(Protocol):
    """The part of a resource that makes values once, in the view of the engine."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of ``data`` whose values are made once."""

    def plan_values(self, live: Object | None, now: datetime) -> ValuePlan:
        """Decide which values stay and which are made.

        Raises:
            konverge.errors.ConfigurationError: A package that the values require is not installed.
        """

    def make_values(self, keys: Iterable[str], entropy: Entropy, now: datetime) -> dict[str, bytes]:
        """Make new values for the keys.

        Raises:
            konverge.errors.KonvergeError: A value cannot be made.
        """

    def stamp_values(self, live: Object | None, now: datetime) -> dict[str, str]:
        """Return the annotations for values that are made now."""

    def render_values(self, values: Mapping[str, bytes], stamps: Mapping[str, str]) -> Object:
        """Return the desired object with the values.

        Raises:
            konverge.errors.KonvergeError: A gate, a mutation or the function for derived values failed.
        """


def read_value(live: Object, key: str) -> bytes | None:
    """Return a value of a Secret's ``data``; None if it is absent, blank or not base64."""
    data = live.get("data")
    text = data.get(key) if isinstance(data, dict) else None
    if not isinstance(text, str):
        return None
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return value if value.strip() else None


def compute_rotation_time(live: Object, period: timedelta) -> datetime | None:
    """Return the time at which the values reach an age; None if the Secret has no readable time.

    Without a valid annotation, the age is that of the Secret. Any client can write the annotation.
    """
    metadata = live["metadata"]
    for text in (_read_annotations(live).get(GENERATED_AT), metadata.get("creationTimestamp")):
        with suppress(ValueError, OverflowError):  # also the year 9999
            return parse_time(str(text)) + period
    return None


def find_rotation_request(live: Object, rotation: str) -> str:
    """Describe the request for new values that is not done yet; empty without one.

    Args:
        live: The Secret.
        rotation: The text that the author declares; empty for none.
    """
    annotations = _read_annotations(live)
    # Without the annotation, the Secret was made by another client: its values count as made for the present text.
    done = annotations.get(ROTATION)
    if rotation and done is not None and done != rotation:
        return f"rotation {rotation!r} is declared"
    requested = annotations.get(ROTATE)
    if requested and _compute_hash(requested) != annotations.get(ROTATED):
        return f"the annotation {ROTATE} requests it"
    return ""


def build_stamps(live: Object | None, rotation: str, now: datetime | None) -> dict[str, str]:
    """Return the annotations about the values.

    Args:
        live: The Secret; None if it does not exist.
        rotation: The text that the author declares.
        now: The time, for values that are made now; None for values that stay.
    """
    annotations = {} if live is None else _read_annotations(live)
    if now is None:
        made_at = annotations.get(GENERATED_AT) or str((live or {}).get("metadata", {}).get("creationTimestamp") or "")
        stamps = {GENERATED_AT: made_at, ROTATION: annotations.get(ROTATION, rotation)}
        return stamps | ({ROTATED: annotations[ROTATED]} if ROTATED in annotations else {})
    stamps = {GENERATED_AT: format_time(now), ROTATION: rotation}
    requested = annotations.get(ROTATE)
    return stamps | ({ROTATED: _compute_hash(requested)} if requested else {})


def _read_annotations(live: Object) -> Mapping[str, Any]:
    annotations = live["metadata"].get("annotations")
    return annotations if isinstance(annotations, dict) else {}


def _compute_hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:_HASH_LENGTH]
