"""The content of a simulation file as frozen values; objects and names of object files are not read yet."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from konverge._internal.crd.api_names import to_camel_case
from konverge_box._internal.calls.scripted_answers import ScriptedAnswer
from konverge_box._internal.file import BoxMetadata
from konverge_box._internal.file.string_formats import ApiVersion, Duration, KindName

__all__ = [
    "KIND",
    "Expectations",
    "ExpectedCondition",
    "ExpectedObject",
    "ObjectName",
    "Patch",
    "RequiredServer",
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


ServerAddress: TypeAlias = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9.-]+:[0-9]{1,5}$", description="a host and port such as 127.0.0.1:5432")
]


IntegrationKind: TypeAlias = Literal["HorizontalPodAutoscaler", "Ingress", "PersistentVolume", "Service"]


class _SimulationStruct(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=to_camel_case):
    """The base of all parts of a simulation file."""


class ObjectName(_SimulationStruct, frozen=True, kw_only=True):
    """An object by kind and name; ``apiVersion`` is optional for kinds of the box and of Kubernetes.

    Without ``namespace``, a namespaced object is in the namespace of the simulation.
    """

    kind: KindName
    name: str
    namespace: str = ""
    api_version: ApiVersion | None = None


class Patch(_SimulationStruct, frozen=True, kw_only=True):
    """A merge patch for an object; a ``status`` in it is merged into the status."""

    kind: KindName
    name: str
    merge: dict[str, Any]
    namespace: str = ""
    api_version: ApiVersion | None = None


class ExpectedCondition(_SimulationStruct, frozen=True, kw_only=True):
    """An expected condition; ``message`` is a part of its message."""

    status: Literal["True", "False", "Unknown"] | bool | None = None
    reason: str = ""
    message: str = ""


class ExpectedObject(_SimulationStruct, frozen=True, kw_only=True):
    """An object that must exist and contain at least these fields.

    A condition is given as its status, or its reason, or both with a part of its message. ``status`` and ``has`` are
    compared field by field: other fields are ignored, and null means that a field is absent. For a Secret,
    ``stringData`` is its decoded data.
    """

    kind: KindName
    name: str
    namespace: str = ""
    api_version: ApiVersion | None = None
    conditions: dict[str, bool | str | ExpectedCondition] = {}
    status: dict[str, Any] = {}
    has: dict[str, Any] = {}


class Expectations(_SimulationStruct, frozen=True, kw_only=True):
    """The state that must be reached after a step, within ``within`` (default: 30s).

    ``created``, ``updated`` and ``deleted`` list all changes of the operator in the step, except to its custom
    resources.
    ``steady`` requires a reconcile of all custom resources without writes, ``noErrors`` that no reconcile of the step
    fails.
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
    """One step: responses change, objects are applied, patched and deleted, and time advances, in this order.

    ``apply`` lists objects, or names of files with objects. A real cluster skips steps with ``only: embedded``, and
    steps with an ``advance`` of more than ten seconds.
    """

    name: str
    answers: dict[str, ScriptedAnswer] = {}
    apply: tuple[dict[str, Any] | str, ...] = ()
    patch: tuple[Patch, ...] = ()
    delete: tuple[ObjectName, ...] = ()
    advance: Duration | None = None
    only: Literal["embedded"] | None = None
    expect: Expectations | None = None


class RequiredServer(_SimulationStruct, frozen=True, kw_only=True):
    """A server outside of the cluster that a provider of the box connects to.

    ``start`` describes in one line what starts it, for example a command.
    """

    address: ServerAddress
    start: str


class SimulationSpec(_SimulationStruct, frozen=True, kw_only=True):
    """The box, the initial state of the cluster, and the steps.

    ``given`` lists objects, or names of files with objects. ``answers`` sets the responses to external calls by name;
    other calls fail. ``startsAt`` is the initial time on the embedded cluster. ``requires`` lists servers of providers:
    without one of them, the simulation is left out; with them, it runs in real time.

    On the embedded cluster, Ingresses and Services get addresses, autoscalers metrics and PersistentVolumes storage.
    ``withoutControllers`` lists kinds that do not: they become ready only if a step patches their status.
    """

    steps: tuple[SimulationStep, ...]
    box: str = "box.yaml"
    given: tuple[dict[str, Any] | str, ...] = ()
    answers: dict[str, ScriptedAnswer] = {}
    starts_at: Timestamp = "2026-01-01T00:00:00Z"
    requires: tuple[RequiredServer, ...] = ()
    without_controllers: tuple[IntegrationKind, ...] = ()


class Simulation(_SimulationStruct, frozen=True, kw_only=True):
    """Changes to a cluster in which a box runs, with the expected results."""

    api_version: Literal["konverge.dev/v1alpha1"]
    kind: Literal["Simulation"]
    metadata: BoxMetadata
    spec: SimulationSpec
