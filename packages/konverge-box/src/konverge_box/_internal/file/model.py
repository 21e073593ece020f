"""The loaded box as frozen values; its strings may still contain expressions.

A field of the type ``str`` may contain expressions; the types of `file.string_formats` may not. `UNSET`
marks a field that the file leaves out, where an explicit null has another meaning.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from konverge._internal.crd.api_names import to_camel_case
from konverge._internal.kube import GroupVersionKind, Object
from konverge_box._internal.file.crd_schemas import OpenAPI
from konverge_box._internal.file.string_formats import (
    ApiVersion,
    ClockTime,
    DnsName,
    Duration,
    FieldPath,
    Identifier,
    KindName,
    Network,
    Plain,
)

__all__ = [
    "API_VERSION",
    "KIND",
    "RESERVED_STATUS",
    "BoxMetadata",
    "BoxResource",
    "BoxSpec",
    "CallAuthentication",
    "ComparisonSpec",
    "ConditionSpec",
    "ConditionalEntry",
    "CrossEntry",
    "CustomResource",
    "DeleteGroup",
    "DeleteTarget",
    "ExternalCall",
    "ForEach",
    "Group",
    "MutationRule",
    "NormalizeSpec",
    "Number",
    "ObjectReference",
    "OnDelete",
    "OperatorBox",
    "ProviderItem",
    "ProviderSettings",
    "ReconcileSpec",
    "ResourceType",
    "RetrySpec",
    "SecretKey",
    "Selector",
    "StatusField",
    "StatusSpec",
    "TimeWindow",
    "TlsSpec",
    "ValidationRule",
]

API_VERSION = "konverge.dev/v1alpha1"
KIND = "OperatorBox"

RESERVED_STATUS = frozenset({"conditions", "observedGeneration", "providers"})
"""Fields of the status that konverge itself writes."""

Scalar: TypeAlias = str | int | float | bool | None
Number: TypeAlias = int | float | str
ValueType: TypeAlias = Literal["string", "integer", "number", "boolean"]
Weekday: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


class _BoxStruct(Struct, frozen=True, kw_only=True, omit_defaults=True, rename=to_camel_case):
    """The base of all parts of a box: frozen, keyword arguments only, camel case in the file."""


class TimeWindow(_BoxStruct, frozen=True, kw_only=True):
    """Hours of the day in UTC, by default from and until midnight; it spans midnight if it ends before it begins."""

    after: ClockTime | None = None
    before: ClockTime | None = None


class ComparisonSpec(_BoxStruct, frozen=True, kw_only=True):
    """A comparison of a value by one operator; without an operator, the value must exist."""

    equals: Scalar | UnsetType = UNSET
    not_equals: Scalar | UnsetType = UNSET
    contains: str | UnsetType = UNSET
    not_contains: str | UnsetType = UNSET
    prefix: str | UnsetType = UNSET
    not_prefix: str | UnsetType = UNSET
    suffix: str | UnsetType = UNSET
    not_suffix: str | UnsetType = UNSET
    in_: tuple[Scalar, ...] | str | UnsetType = UNSET
    not_in: tuple[Scalar, ...] | str | UnsetType = UNSET
    regex: str | UnsetType = UNSET
    exists: bool | UnsetType = UNSET
    not_exists: bool | UnsetType = UNSET
    greater_than: Number | UnsetType = UNSET
    less_than: Number | UnsetType = UNSET
    min: Number | UnsetType = UNSET
    max: Number | UnsetType = UNSET
    between: tuple[Number, ...] | UnsetType = UNSET
    not_between: tuple[Number, ...] | UnsetType = UNSET
    type_of: Literal["map", "list", "string", "number", "bool", "null"] | UnsetType = UNSET

    def to_mapping(self) -> Object:
        """Return the fields of the file, as `konverge_box.expressions` compiles them."""
        declared: Object = msgspec.json.decode(msgspec.json.encode(self))
        return declared


class ConditionSpec(ComparisonSpec, frozen=True, kw_only=True):
    """One condition of ``when`` or ``or``: a field, a time of day, days of the week, a schedule, or several of these.

    ``field`` is a path or an expression. Times are in UTC. ``cron`` holds for ``duration`` (default: 1m) after each
    time of the schedule.
    """

    field: str = ""
    time: TimeWindow | None = None
    day_of_week: tuple[Weekday, ...] | Literal["weekday", "weekend"] | UnsetType = UNSET
    cron: Plain = ""
    duration: Duration = "1m"
    negate: bool = False


class ConditionalEntry(_BoxStruct, frozen=True, kw_only=True):
    """An entry with conditions: it applies if all of ``when`` hold and, where ``or`` is given, at least one of ``or``.

    ``anyOf`` is another name for ``or``; `alternatives` has the list that is given.
    """

    when: tuple[ConditionSpec, ...] = ()
    or_: tuple[ConditionSpec, ...] = ()
    any_of: tuple[ConditionSpec, ...] = ()

    @property
    def alternatives(self) -> tuple[ConditionSpec, ...]:
        """The alternative conditions; at least one must hold, if there are any."""
        return self.or_ or self.any_of


class ForEach(_BoxStruct, frozen=True, kw_only=True):
    """Repeats an entry for each item of a list, or for each key of a map in sorted order.

    ``field`` is a path or an expression. In a list of loops, each repeats the entry for its own items; its
    ``field`` can read the items of the loops before it. Expressions of the entry read ``item`` (the key, for a
    map), ``value`` (only for a map), ``index``, the item under the name in ``as``, and ``key``. ``key`` is an
    expression that identifies an item; by default it is the item itself, or the key of a map. The keys of several
    loops are joined with dashes.
    """

    MAY_STAND_ALONE: ClassVar[bool] = True

    field: str
    as_: Identifier = "item"
    key: str = ""


class ResourceType(_BoxStruct, frozen=True, kw_only=True):
    """The type of a custom resource. With ``schema`` the box defines it.

    Without ``schema``, the cluster must have the definition. ``schema`` contains ``spec`` and optionally ``status``
    in the form of a CustomResourceDefinition's ``openAPIV3Schema``.
    ``type`` may be left out where ``properties`` or ``items`` implies it.
    """

    api_version: ApiVersion
    kind: KindName
    plural: DnsName = ""
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"
    short_names: tuple[DnsName, ...] = ()
    categories: tuple[DnsName, ...] = ()
    additional_printer_columns: tuple[dict[str, Any], ...] = ()
    schema: dict[Literal["spec", "status"], OpenAPI] | None = None

    @property
    def gvk(self) -> GroupVersionKind:
        """The group, version and kind."""
        return GroupVersionKind.parse(self.api_version, self.kind)


class ReconcileSpec(_BoxStruct, frozen=True, kw_only=True):
    """Settings of reconciles: parallel workers, the interval of full reconciles, and what happens to existing objects.

    With ``adopt: false``, existing objects that the custom resource does not own stay unchanged; their group is Blocked
    and its condition names the owner. The ``adopt`` of a resource takes precedence.
    """

    workers: Annotated[int, Meta(ge=1, le=100)] = 4
    resync: Duration = "10m"
    failure_threshold: Annotated[int, Meta(ge=1)] = 5
    retry_denied: bool = False
    adopt: bool = True


class NormalizeSpec(_BoxStruct, frozen=True, kw_only=True):
    """The canonical spec: each field of ``spec`` is computed from the object as read, then converted to its type."""

    spec: dict[FieldPath, Any] = {}
    types: dict[FieldPath, ValueType] = {}


class MutationRule(ConditionalEntry, frozen=True, kw_only=True):
    """Sets a field: ``default`` if it is absent, null or empty, ``override`` always.

    ``field`` is a path, or an expression that renders one: in ``spec``, or a label or annotation, whose value is a
    string.
    """

    field: str
    default: Any | UnsetType = UNSET
    override: Any | UnsetType = UNSET
    type: ValueType | None = None


class ValidationRule(ComparisonSpec, frozen=True, kw_only=True):
    """A rule for a field, which is a path or an expression; without an operator, the field must exist.

    Its conditions are those of `ConditionalEntry`, which msgspec cannot add as a second base.
    """

    field: str
    message: str = ""
    action: Literal["deny", "warn"] = "deny"
    unique: bool | UnsetType = UNSET
    when: tuple[ConditionSpec, ...] = ()
    or_: tuple[ConditionSpec, ...] = ()
    any_of: tuple[ConditionSpec, ...] = ()

    @property
    def alternatives(self) -> tuple[ConditionSpec, ...]:
        """The alternative conditions; at least one must hold, if there are any."""
        return self.or_ or self.any_of


class Selector(_BoxStruct, frozen=True, kw_only=True):
    """Selects an object by name, or the first object by name that has all labels."""

    name: str = ""
    namespace: str = ""
    match_labels: dict[str, str] = {}


class CrossEntry(ConditionalEntry, frozen=True, kw_only=True):
    """An object of the cluster that expressions read as ``cross.<as>``; it is read before resources are created.

    Either ``crd`` names a custom resource of this file, or ``apiVersion`` and ``kind`` name any kind of the cluster.
    With
    ``strategy: all``, ``items`` lists all matches. With ``wake: false``, changes of the object trigger no reconcile.
    """

    crd: Identifier | None = None
    api_version: ApiVersion | None = None
    kind: KindName | None = None
    selector: Selector = Selector()
    as_: Identifier | None = None
    strategy: Literal["first", "all"] = "first"
    wake: bool = True

    @property
    def name(self) -> str:
        """The name under which expressions read the object."""
        return self.as_ or self.crd or ""


class SecretKey(_BoxStruct, frozen=True, kw_only=True):
    """A value in a Secret; by default in the custom resource's namespace."""

    name: str
    key: str
    namespace: str = ""


class CallAuthentication(_BoxStruct, frozen=True, kw_only=True):
    """The credential of a call: a Secret's value or an environment variable, sent in a header.

    In ``Authorization`` it is sent as a Bearer token, in any other header as it is.
    """

    secret_ref: SecretKey | None = None
    env: Plain | None = None
    header: Plain = "Authorization"


class RetrySpec(_BoxStruct, frozen=True, kw_only=True):
    """The number of attempts of a call in total, and the delays between them."""

    attempts: Annotated[int, Meta(ge=1, le=10)] = 3
    initial: Duration = "500ms"
    max: Duration = "30s"
    factor: Annotated[float, Meta(ge=1, le=10)] = 2.0


class ExternalCall(ConditionalEntry, frozen=True, kw_only=True):
    """A call whose result expressions read as ``external.<name>``; independent calls run in parallel."""

    name: Identifier
    protocol: Literal["http", "prometheus", "redis", "postgres"] = "http"
    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    headers: dict[str, str] = {}
    body: Any | UnsetType = UNSET
    query: str = ""
    auth: CallAuthentication | None = None
    timeout: Duration = "10s"
    expected_status: tuple[Annotated[int, Meta(ge=100, le=599)], ...] = ()
    continue_on_error: bool = False
    retry: RetrySpec | None = None
    cache_for: Duration | None = None


class BoxResource(ConditionalEntry, frozen=True, kw_only=True):
    """One object that the box declares, or one for each item; its short forms are expanded.

    Args:
        path: Its path in the file, for messages at run time.
        kind: The name of its list in the file, for example ``deployments``.
        object: The object in the form of the Kubernetes API; its strings may contain expressions. ``apiVersion``,
            ``kind`` and ``metadata.name`` are always present.
        for_each: The loops that repeat it; empty for one object.
        reconcile: In ``onCreate``: keep it as declared after it is created.
        adopt: Whether an existing object is taken over; None for the setting of the custom resource.
        required_conditions: For ``custom``: the conditions that must be True; empty for those that most kinds have.
        once: For a Secret: its values are generated once and then kept.
        rotate_after: For a Secret: the maximum age of its values.
        tls: For a Secret: the certificate that it contains.
        copy_from: For a Secret or ConfigMap: the object whose data is copied.
        to_namespaces: For a Secret or ConfigMap: the namespaces that each get a copy. An item can be an expression
            whose value is a list.
        wait_for: Conditions for its creation; until they hold, it and the entries after it in its group wait.
        ready_when: Conditions under which it is ready, instead of the rule of its kind.
    """

    path: str
    kind: str
    object: Object
    for_each: tuple[ForEach, ...] = ()
    reconcile: bool = False
    adopt: bool | None = None
    required_conditions: tuple[str, ...] = ()
    once: bool = False
    rotate_after: Duration | None = None
    tls: TlsSpec | None = None
    copy_from: ObjectReference | None = None
    to_namespaces: tuple[str, ...] | str = ()
    wait_for: tuple[ConditionSpec, ...] = ()
    ready_when: tuple[ConditionSpec, ...] = ()

    @property
    def gvk(self) -> GroupVersionKind:
        """The group, version and kind."""
        return GroupVersionKind.of(self.object)


class ObjectReference(_BoxStruct, frozen=True, kw_only=True):
    """Another object of a given kind; by default in the custom resource's namespace."""

    name: str
    namespace: str = ""


class TlsSpec(_BoxStruct, frozen=True, kw_only=True):
    """A generated certificate and the authority that signed it; valid for 365d by default."""

    common_name: str
    dns_names: tuple[str, ...] = ()
    valid_for: Duration = "365d"


class Group(ConditionalEntry, frozen=True, kw_only=True):
    """Resources that are created together, ordered by kind and, in a kind, by their position in the file.

    ``waitsFor`` names earlier groups that must be ready before this group starts. A group that is not ready after
    ``gracePeriod`` is Degraded or Down. While all of ``suspend`` hold, workloads are scaled down and their
    configuration stays.
    """

    MAY_STAND_ALONE: ClassVar[bool] = True

    name: Identifier | None = None
    waits_for: tuple[Identifier, ...] = ()
    grace_period: Duration | None = None
    suspend: tuple[ConditionSpec, ...] = ()
    resources: tuple[BoxResource, ...] = ()


class ProviderItem(ConditionalEntry, frozen=True, kw_only=True):
    """One item that a provider manages outside of the cluster."""

    kind: KindName
    name: str
    for_each: tuple[ForEach, ...] = ()
    spec: dict[str, Any] = {}


class ProviderSettings(_BoxStruct, frozen=True, kw_only=True):
    """The connection to a provider; a value of ``settings`` may come from a Secret through ``secretRefs`` instead."""

    required: bool = True
    settings: dict[str, Plain | int | float | bool] = {}
    secret_refs: dict[str, SecretKey] = {}


class StatusField(ConditionalEntry, frozen=True, kw_only=True):
    """A field of the status: its path without ``status.``, and its value."""

    path: FieldPath
    value: Any
    type: ValueType | None = None
    clear_on_false: bool = False


class StatusSpec(_BoxStruct, frozen=True, kw_only=True):
    """The fields of the status besides conditions, in order; for one path, the last entry that applies wins."""

    fields: tuple[StatusField, ...] = ()


class DeleteTarget(_BoxStruct, frozen=True, kw_only=True):
    """An object to delete; ``apiVersion`` and ``kind`` are given only under ``custom``."""

    name: str
    namespace: str = ""
    api_version: ApiVersion | None = None
    kind: KindName | None = None


class DeleteGroup(ConditionalEntry, frozen=True, kw_only=True):
    """One group of a deletion: its Jobs run to completion, then its objects are deleted until they are gone."""

    name: Identifier | None = None
    run: tuple[BoxResource, ...] = ()
    delete: dict[str, tuple[DeleteTarget, ...]] = {}


class OnDelete(ConditionalEntry, frozen=True, kw_only=True):
    """Groups that run in order before a custom resource is deleted; ``timeout`` covers all groups (default: 5m).

    A Job can never run in a namespace that is being deleted. With ``deletedNamespace: wait`` it keeps the custom
    resource until a user removes the finalizer; with ``skip`` the deletion continues without it.
    """

    timeout: Duration = "5m"
    deleted_namespace: Literal["wait", "skip"] = "wait"
    groups: tuple[DeleteGroup, ...] = ()


class CustomResource(_BoxStruct, frozen=True, kw_only=True):
    """One custom resource with the steps of its pipeline in execution order.

    While all of ``pause`` hold, an object of the kind is paused: nothing that belongs to it is changed or deleted.
    """

    resource: ResourceType
    pause: tuple[ConditionSpec, ...] = ()
    depends_on: dict[Identifier, Literal["started", "healthy"]] = {}
    reconcile: ReconcileSpec = ReconcileSpec()
    finalizers: tuple[Plain, ...] = ()
    normalize: NormalizeSpec = NormalizeSpec()
    mutation: tuple[MutationRule, ...] = ()
    validation: tuple[ValidationRule, ...] = ()
    cross: tuple[CrossEntry, ...] = ()
    external: tuple[ExternalCall, ...] = ()
    on_create: tuple[Group, ...] = ()
    on_reconcile: tuple[Group, ...] = ()
    providers: dict[Identifier, tuple[ProviderItem, ...]] = {}
    status: StatusSpec = StatusSpec()
    on_delete: OnDelete | None = None

    @property
    def resources(self) -> tuple[BoxResource, ...]:
        """The resources of all groups, in order."""
        return tuple(resource for group in (*self.on_create, *self.on_reconcile) for resource in group.resources)


class BoxMetadata(_BoxStruct, frozen=True, kw_only=True):
    """The name, labels and annotations of the box."""

    name: DnsName
    labels: dict[str, Plain] = {}
    annotations: dict[str, Plain] = {}


class BoxSpec(_BoxStruct, frozen=True, kw_only=True):
    """The custom resources of the operator, each under a name of its own.

    ``allowedNetworks`` lists the private networks that external calls may reach. ``imports`` lists references to other
    boxes, whose custom resources and providers become part of this box.
    """

    crds: dict[Identifier, CustomResource]
    providers: dict[Identifier, ProviderSettings] = {}
    allowed_networks: tuple[Network, ...] = ()
    imports: tuple[Any, ...] = ()


class OperatorBox(_BoxStruct, frozen=True, kw_only=True):
    """An operator in one file."""

    api_version: Literal["konverge.dev/v1alpha1"]
    kind: Literal["OperatorBox"]
    metadata: BoxMetadata
    spec: BoxSpec
