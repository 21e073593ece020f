"""What a loaded box is: frozen values, whose texts may still hold expressions.

A field that is a plain ``str`` may hold expressions; those of `konverge_box.file.string_formats` may not. `UNSET`
stands for
what the file does not say, where an explicit null would be something else.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from konverge.crd.api_names import to_camel_case
from konverge.kube import GroupVersionKind, Object
from konverge_box.file.crd_schemas import OpenAPI
from konverge_box.file.string_formats import (
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
    """What all parts of a box share: frozen, by keyword, in camel case."""


class TimeWindow(_BoxStruct, frozen=True, kw_only=True):
    """Hours of the day in UTC, from or until midnight when not given; over midnight where it ends before it begins."""

    after: ClockTime | None = None
    before: ClockTime | None = None


class ComparisonSpec(_BoxStruct, frozen=True, kw_only=True):
    """Asks a value with one operator; with none, whether it exists."""

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
        """What the file says, for `konverge_box.expressions` to compile."""
        found: Object = msgspec.json.decode(msgspec.json.encode(self))
        return found


class ConditionSpec(ComparisonSpec, frozen=True, kw_only=True):
    """One condition of ``when`` or ``or``: about a field, a time of day, a day of the week, a schedule, or several.

    ``field`` is a path or an expression. Times are UTC. ``cron`` holds for ``duration`` after each time that it names.
    """

    field: str = ""
    time: TimeWindow | None = None
    day_of_week: tuple[Weekday, ...] | Literal["weekday", "weekend"] | UnsetType = UNSET
    cron: Plain = ""
    duration: Duration = "1m"
    negate: bool = False


class ConditionalEntry(_BoxStruct, frozen=True, kw_only=True):
    """What has conditions: all of ``when`` hold, and one of ``or`` if there are any.

    ``anyOf`` is another name for ``or``; `alternatives` has whichever is given.
    """

    when: tuple[ConditionSpec, ...] = ()
    or_: tuple[ConditionSpec, ...] = ()
    any_of: tuple[ConditionSpec, ...] = ()

    @property
    def alternatives(self) -> tuple[ConditionSpec, ...]:
        """The conditions of which one has to hold; empty for none."""
        return self.or_ or self.any_of


class ForEach(_BoxStruct, frozen=True, kw_only=True):
    """Makes a resource for each element of a list, or entry of a map in the order of its keys.

    Expressions of that resource know ``item`` (of a map: the key), ``value`` (of a map), ``index`` and what ``as``
    names, which is the item.
    """

    field: FieldPath
    as_: Identifier = "item"


class ResourceType(_BoxStruct, frozen=True, kw_only=True):
    """Which custom resource it is. With ``schema`` the box has its definition; without, the cluster has it already.

    ``schema`` has ``spec`` and perhaps ``status`` in the form of a CustomResourceDefinition's ``openAPIV3Schema``; the
    type of an object or a list may be left out where ``properties`` or ``items`` says it.
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
        """The kind in full."""
        return GroupVersionKind.parse(self.api_version, self.kind)


class ReconcileSpec(_BoxStruct, frozen=True, kw_only=True):
    """How passes are run.

    ``adopt: false`` leaves objects alone that exist already and are not the custom resource's: their group is Blocked
    and names who has them. A resource's own ``adopt`` goes first.
    """

    workers: Annotated[int, Meta(ge=1, le=100)] = 4
    resync: Duration = "10m"
    failure_threshold: Annotated[int, Meta(ge=1)] = 5
    retry_denied: bool = False
    adopt: bool = True


class NormalizeSpec(_BoxStruct, frozen=True, kw_only=True):
    """Makes the canonical spec: each field of ``spec`` from the object as it was read, then put into its type."""

    spec: dict[FieldPath, Any] = {}
    types: dict[FieldPath, ValueType] = {}


class MutationRule(ConditionalEntry, frozen=True, kw_only=True):
    """Gives a field its value: ``default`` where it is absent, null or empty, ``override`` always.

    ``field`` is a path or an expression for one: of ``spec``, or of a label or an annotation, which get text.
    """

    field: str
    default: Any | UnsetType = UNSET
    override: Any | UnsetType = UNSET
    type: ValueType | None = None


class ValidationRule(ComparisonSpec, frozen=True, kw_only=True):
    """What has to hold of a field, which is a path or an expression; with no operator, that it exists.

    Its conditions are those of `ConditionalEntry`, which msgspec cannot add to a second base.
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
        """The conditions of which one has to hold; empty for none."""
        return self.or_ or self.any_of


class Selector(_BoxStruct, frozen=True, kw_only=True):
    """Which object: by name, or the first by name that has all labels."""

    name: str = ""
    namespace: str = ""
    match_labels: dict[str, str] = {}


class CrossEntry(ConditionalEntry, frozen=True, kw_only=True):
    """An object that is read before the resources are made: ``cross.<as>``.

    Either ``crd`` names a custom resource of this file, or ``apiVersion`` and ``kind`` any kind of the cluster.
    ``strategy: all`` gives all that match, as ``items``. With ``wake: false`` a change of it wakes nobody.
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
        """What expressions call it."""
        return self.as_ or self.crd or ""


class SecretKey(_BoxStruct, frozen=True, kw_only=True):
    """A value in a Secret; the namespace is the custom resource's when not given."""

    name: str
    key: str
    namespace: str = ""


class CallAuthentication(_BoxStruct, frozen=True, kw_only=True):
    """What a call proves itself with: a Secret's value or an environment variable, in a header.

    In ``Authorization`` it is sent as a Bearer token, in any other header as it is.
    """

    secret_ref: SecretKey | None = None
    env: Plain | None = None
    header: Plain = "Authorization"


class RetrySpec(_BoxStruct, frozen=True, kw_only=True):
    """How often a call is tried in all, and how long the pauses are."""

    attempts: Annotated[int, Meta(ge=1, le=10)] = 3
    initial: Duration = "500ms"
    max: Duration = "30s"
    factor: Annotated[float, Meta(ge=1, le=10)] = 2.0


class ExternalCall(ConditionalEntry, frozen=True, kw_only=True):
    """A call whose answer expressions know as ``external.<name>``. Calls that do not read each other run at once."""

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
    """One object that the box wants, or one for each item; short forms are written out.

    Args:
        path: Where it stands in the file, for messages at run time.
        kind: What the file calls its kind, for example ``deployments``.
        object: The object as Kubernetes has it, whose texts may hold expressions; ``apiVersion``, ``kind`` and
            ``metadata.name`` are always there.
        for_each: What it is repeated for; None for one object.
        reconcile: Of ``onCreate``: kept as declared, not only created.
        adopt: Whether an object that exists already is taken over; None for what holds for the custom resource.
        required_conditions: Of ``custom``: the conditions that make it ready; empty for those that most kinds have.
        once: Of a Secret: its values are made once and then kept.
        rotate_after: Of a Secret: how old its values may get.
        tls: Of a Secret: it holds a certificate that is made.
        copy_from: Of a Secret or ConfigMap: the object whose data it has.
        to_namespaces: Of a Secret or ConfigMap: the namespaces that each get it.
        wait_for: What has to hold before it is made; until then it and what comes after it in its group wait.
    """

    path: str
    kind: str
    object: Object
    for_each: ForEach | None = None
    reconcile: bool = False
    adopt: bool | None = None
    required_conditions: tuple[str, ...] = ()
    once: bool = False
    rotate_after: Duration | None = None
    tls: TlsSpec | None = None
    copy_from: ObjectReference | None = None
    to_namespaces: tuple[str, ...] | str = ()
    wait_for: tuple[ConditionSpec, ...] = ()

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind in full."""
        return GroupVersionKind.of(self.object)


class ObjectReference(_BoxStruct, frozen=True, kw_only=True):
    """Another object of a known kind; the namespace is the custom resource's when not given."""

    name: str
    namespace: str = ""


class TlsSpec(_BoxStruct, frozen=True, kw_only=True):
    """A certificate of its own, and the authority that signed it."""

    common_name: str
    dns_names: tuple[str, ...] = ()
    valid_for: Duration = "365d"


class Group(ConditionalEntry, frozen=True, kw_only=True):
    """Resources that are made together: kind by kind in the order of `KINDS`, in a kind in the order of the file.

    ``waitsFor`` names earlier groups that have to be ready before this one is begun. What is not ready after
    ``gracePeriod`` is Degraded or Down. While all of ``suspend`` hold, workloads are taken down and their configuration
    stays.
    """

    MAY_STAND_ALONE: ClassVar[bool] = True

    name: Identifier | None = None
    waits_for: tuple[Identifier, ...] = ()
    grace_period: Duration | None = None
    suspend: tuple[ConditionSpec, ...] = ()
    resources: tuple[BoxResource, ...] = ()


class ProviderItem(ConditionalEntry, frozen=True, kw_only=True):
    """One thing that a provider keeps outside of the cluster."""

    kind: KindName
    name: str
    for_each: ForEach | None = None
    spec: dict[str, Any] = {}


class ProviderSettings(_BoxStruct, frozen=True, kw_only=True):
    """How a provider is reached; a text of ``settings`` may be a reference to a Secret instead."""

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
    """What the status says besides conditions, in order; of one path the last that applies wins."""

    fields: tuple[StatusField, ...] = ()


class DeleteTarget(_BoxStruct, frozen=True, kw_only=True):
    """An object to delete; ``apiVersion`` and ``kind`` under ``custom`` alone."""

    name: str
    namespace: str = ""
    api_version: ApiVersion | None = None
    kind: KindName | None = None


class DeleteGroup(ConditionalEntry, frozen=True, kw_only=True):
    """One step of the deletion: its Jobs run to their end, then its objects are deleted until they are gone."""

    name: Identifier | None = None
    run: tuple[BoxResource, ...] = ()
    delete: dict[str, tuple[DeleteTarget, ...]] = {}


class OnDelete(ConditionalEntry, frozen=True, kw_only=True):
    """What happens, group by group, before a custom resource may go; ``timeout`` is for all groups together."""

    timeout: Duration = "5m"
    groups: tuple[DeleteGroup, ...] = ()


class CustomResource(_BoxStruct, frozen=True, kw_only=True):
    """One custom resource and the steps of its pipeline, in their order."""

    resource: ResourceType
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
        """What is made, of all groups in their order."""
        return tuple(resource for group in (*self.on_create, *self.on_reconcile) for resource in group.resources)


class BoxMetadata(_BoxStruct, frozen=True, kw_only=True):
    """What the box is called."""

    name: DnsName
    labels: dict[str, Plain] = {}
    annotations: dict[str, Plain] = {}


class BoxSpec(_BoxStruct, frozen=True, kw_only=True):
    """The custom resources of the operator, by the name that the file gives each.

    ``allowedNetworks`` are the private networks that external calls may reach; ``imports`` are references to boxes
    elsewhere, whose custom resources and providers become this box's.
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
