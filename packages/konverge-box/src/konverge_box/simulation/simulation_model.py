"""What a simulation file says. Frozen; objects and files of objects are still as the file has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from konverge.crd.api_names import to_camel_case
from konverge_box.calls.scripted_answers import ScriptedAnswer
from konverge_box.file import BoxMetadata
from konverge_box.file.string_formats import ApiVersion, Duration, KindName

__all__ = [
    "KIND",
    "Expectations",
    "ExpectedCondition",
    "ExpectedObject",
    "ObjectName",
    "Patch",
    "Simulation",
    "SimulationSpec",
    "SimulationStep",
]

KIND = "Simulation"

Timestamp: TypeAlias = Annotated[
    str,
    Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", description="a time in UTC such as 2026-03-01T08:00:00Z"),
]
Which: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[A-Z][A-Za-z0-9]*/([a-z0-9.-]+/)?[a-z0-9][a-z0-9.-]*$",
        description="an object as Kind/name, or Kind/namespace/name in another namespace",
    ),
]


class _SimulationStruct(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=to_camel_case):
    """What all parts share."""


class ObjectName(_SimulationStruct, frozen=True, kw_only=True):
    """An object. ``apiVersion`` may be left out of kinds that the box or Kubernetes has.

    Without ``namespace`` it is in that of the simulation, if its kind has one.
    """

    kind: KindName
    name: str
    namespace: str = ""
    api_version: ApiVersion | None = None


class Patch(_SimulationStruct, frozen=True, kw_only=True):
    """A merge patch of an object; with ``status`` in it, of that, too."""

    kind: KindName
    name: str
    merge: dict[str, Any]
    namespace: str = ""
    api_version: ApiVersion | None = None


class ExpectedCondition(_SimulationStruct, frozen=True, kw_only=True):
    """What a condition has to say; ``message`` is a part of it."""

    status: Literal["True", "False", "Unknown"] | bool | None = None
    reason: str = ""
    message: str = ""


class ExpectedObject(_SimulationStruct, frozen=True, kw_only=True):
    """An object that is there, with at least this in it.

    A condition is its status, or its reason, or both and a part of its message. ``status`` and ``has`` are compared
    field by field: what is not named does not count, null is a field that is absent. Of a Secret, ``stringData`` is
    its data as text.
    """

    kind: KindName
    name: str
    namespace: str = ""
    api_version: ApiVersion | None = None
    conditions: dict[str, bool | str | ExpectedCondition] = {}
    status: dict[str, Any] = {}
    has: dict[str, Any] = {}


class Expectations(_SimulationStruct, frozen=True, kw_only=True):
    """What is to hold after a step, at the latest after ``within``.

    ``created``, ``updated`` and ``deleted`` are all that the operator did in the step, besides its custom resources;
    ``steady`` is a pass over all of them that writes nothing, ``noErrors`` that no pass of the step failed.
    """

    within: Duration = "30s"
    objects: tuple[ExpectedObject, ...] = ()
    absent: tuple[ObjectName, ...] = ()
    created: tuple[Which, ...] | UnsetType = UNSET
    updated: tuple[Which, ...] | UnsetType = UNSET
    deleted: tuple[Which, ...] | UnsetType = UNSET
    steady: bool = False
    no_errors: bool = False


class SimulationStep(_SimulationStruct, frozen=True, kw_only=True):
    """One thing that happens: answers change, then objects are applied, patched and deleted, then time goes by.

    ``apply`` has objects, or names of files with objects. ``only: embedded`` is left out on a real cluster, as is an
    ``advance`` of more than ten seconds with all of its step: nobody waits for hours.
    """

    name: str
    answers: dict[str, ScriptedAnswer] = {}
    apply: tuple[dict[str, Any] | str, ...] = ()
    patch: tuple[Patch, ...] = ()
    delete: tuple[ObjectName, ...] = ()
    advance: Duration | None = None
    only: Literal["embedded"] | None = None
    expect: Expectations | None = None


class SimulationSpec(_SimulationStruct, frozen=True, kw_only=True):
    """The box, the cluster before it runs, and the steps.

    ``given`` has objects, or names of files with objects. ``answers`` says by name what external calls are answered;
    any other fails. ``startsAt`` is the time on the embedded cluster.
    """

    steps: tuple[SimulationStep, ...]
    box: str = "box.yaml"
    given: tuple[dict[str, Any] | str, ...] = ()
    answers: dict[str, ScriptedAnswer] = {}
    starts_at: Timestamp = "2026-01-01T00:00:00Z"


class Simulation(_SimulationStruct, frozen=True, kw_only=True):
    """What is done to a cluster in which a box runs, and what is expected of it."""

    api_version: Literal["konverge.dev/v1alpha1"]
    kind: Literal["Simulation"]
    metadata: BoxMetadata
    spec: SimulationSpec
