"""The declaration of a class as a custom resource: group, version, kind, names and columns of kubectl."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from msgspec import inspect

from konverge._internal.crd.api_names import to_plural
from konverge._internal.crd.class_types import CLASSES, read_class_type
from konverge._internal.crd.constraints import CelRule
from konverge._internal.crd.resource_metadata import Metadata
from konverge._internal.crd.schema_generation import build_object_schema
from konverge._internal.crd.schema_validation import validate_schema
from konverge._internal.crd.subresources import Scale, validate_scale, validate_selectable_fields
from konverge._internal.kube import GroupVersionKind, Object, RestMapping
from konverge.errors import BuildError

__all__ = [
    "AGE",
    "READY",
    "REASON",
    "PrintColumn",
    "ResourceDefinition",
    "attach_definition",
    "custom_resource",
    "find_definition",
]

T = TypeVar("T")

_ATTRIBUTE = "__konverge_definition__"
_FIELDS = frozenset({"metadata", "spec", "status"})
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")


@dataclass(frozen=True, slots=True)
class PrintColumn:
    """One column of ``kubectl get``.

    Args:
        name: The heading of the column.
        type: ``string``, ``integer``, ``number``, ``boolean`` or ``date``.
        json_path: The path of the value, for example ``.spec.replicas``.
        description: The description for tools such as ``kubectl explain``.
        priority: 0 for a column that kubectl always prints; a higher number only with ``-o wide``.
    """

    name: str
    type: Literal["string", "integer", "number", "boolean", "date"]
    json_path: str
    description: str = ""
    priority: int = 0


READY = PrintColumn("Ready", "string", ".status.conditions[?(@.type=='Ready')].status")
REASON = PrintColumn("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason")
AGE = PrintColumn("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """Declaration of a class by `custom_resource`.

    `schema` is the structural schema of only the class: without the API's own fields and without conditions.
    `deprecation` is the warning that the server sends with each response of a deprecated version: empty for the
    server's own text, None if the version is not deprecated. If `is_external`, the cluster already has the
    CustomResourceDefinition, and another operator or user maintains it. Without `has_own_status`, the status belongs to
    another controller, and konverge never writes it.
    """

    cls: type
    schema: Object = field(repr=False)
    gvk: GroupVersionKind
    plural: str
    namespaced: bool
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    print_columns: tuple[PrintColumn, ...]
    rules: tuple[CelRule, ...] = ()
    scale: Scale | None = None
    selectable_fields: tuple[str, ...] = ()
    is_served: bool = True
    deprecation: str | None = None
    also_serves: tuple[type, ...] = ()
    is_external: bool = False
    has_own_status: bool = True

    @property
    def versions(self) -> tuple[ResourceDefinition, ...]:
        """The definitions of all versions of the kind: this one, which is stored, then the others in order."""
        return (self, *(find_definition(cls) for cls in self.also_serves))

    @property
    def singular(self) -> str:
        """The kind in lower case."""
        return self.gvk.kind.lower()

    @property
    def name(self) -> str:
        """The name of the CustomResourceDefinition: plural and group."""
        return f"{self.plural}.{self.gvk.group}"

    @property
    def mapping(self) -> RestMapping:
        """REST mapping of the kind on a server with this definition."""
        return RestMapping(
            gvk=self.gvk,
            plural=self.plural,
            namespaced=self.namespaced,
            singular=self.singular,
            short_names=self.short_names,
            subresources=frozenset({"status"} if self.scale is None else {"status", "scale"}),
            categories=self.categories,
        )


def custom_resource(
    *,
    group: str,
    version: str,
    kind: str | None = None,
    plural: str | None = None,
    scope: Literal["Namespaced", "Cluster"] = "Namespaced",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    print_columns: Sequence[PrintColumn] = (READY, REASON, AGE),
    rules: Sequence[CelRule] = (),
    scale: Scale | None = None,
    selectable_fields: Sequence[str] = (),
    served: bool = True,
    deprecated: bool | str = False,
    also_serves: Sequence[type[Any]] = (),
    external: bool = False,
) -> Callable[[type[T]], type[T]]:
    """Declare a class as a custom resource, without a change of the class.

    Put it above ``@dataclass`` or ``@attrs.define``, or on a `msgspec.Struct` or a pydantic model. The classes of its
    fields can be of any of these kinds. The class has the fields ``metadata: Metadata`` and ``spec``, and optionally
    ``status`` for results other than conditions::

        @custom_resource(group="demo.konverge.dev", version="v1alpha1")
        @dataclass
        class WebApp:
            metadata: Metadata
            spec: WebAppSpec

    Args:
        group: The API group, which contains a dot.
        version: The API version, for example ``v1alpha1``.
        kind: The kind (default: the name of the class).
        plural: The resource's name in URLs (default: derived from the kind).
        scope: Namespaced or Cluster.
        short_names: Short names for kubectl.
        categories: Groups of kinds for kubectl, for example ``all``.
        print_columns: Columns of ``kubectl get`` after the name.
        rules: CEL rules for the whole object; ``self`` has spec, status and metadata. The server exposes only name and
            generateName of the metadata to rules.
        scale: The paths of the scale subresource; None without one.
        selectable_fields: Paths such as ``.spec.tier`` for ``--field-selector``; at most 8.
        served: True if clients can use this version; False for a version of `also_serves` that is being removed.
        deprecated: True if the server warns each user of this version, or the text of the warning.
        also_serves: Classes under `custom_resource` that are other versions of this kind. This class is the version
            that is stored. Where they differ in more than fields that one of them lacks, objects need a conversion
            webhook; without it, the server keeps what both have under one name and drops the rest.
        external: True for a kind of another operator: konverge creates no definition and never writes the status. The
            class can declare only the fields that the author reads.

    Raises:
        BuildError: The declaration cannot be served; it lists every mistake.
    """

    def decorate(cls: type[T]) -> type[T]:
        gvk = GroupVersionKind(group, version, cls.__name__ if kind is None else kind)
        schema, mistakes = _read_schema(cls)
        definition = ResourceDefinition(
            cls=cls,
            schema=schema,
            gvk=gvk,
            plural=to_plural(gvk.kind) if plural is None else plural,
            namespaced=scope == "Namespaced",
            short_names=tuple(short_names),
            categories=tuple(categories),
            print_columns=tuple(print_columns),
            rules=tuple(rules),
            scale=scale,
            selectable_fields=tuple(selectable_fields),
            is_served=served,
            deprecation=(deprecated if isinstance(deprecated, str) else "") if deprecated else None,
            also_serves=tuple(also_serves),
            is_external=external,
            has_own_status=not external,
        )
        attach_definition(
            definition,
            [
                *mistakes,
                *validate_schema(schema, [rule.to_manifest() for rule in rules]),
                *([] if scale is None else validate_scale(scale, schema)),
                *validate_selectable_fields(definition.selectable_fields, schema),
                *_validate_versions(definition),
            ],
        )
        return cls

    return decorate


def attach_definition(definition: ResourceDefinition, errors: Sequence[str] = ()) -> None:
    """Attach the definition to its class.

    Args:
        definition: The definition.
        errors: Errors of the definition that are already known.

    Raises:
        BuildError: The definition is invalid; the message lists every error.
    """
    all_errors = [*([] if definition.is_external else _validate_names(definition)), *errors]
    if all_errors:
        raise BuildError(f"custom resource {definition.cls.__qualname__}", all_errors)
    setattr(definition.cls, _ATTRIBUTE, definition)


def find_definition(cls: type[Any]) -> ResourceDefinition:
    """Return the definition of a custom resource class.

    Raises:
        BuildError: The class itself (not a base class) has no ``@custom_resource``.
    """
    definition = cls.__dict__.get(_ATTRIBUTE)
    if not isinstance(definition, ResourceDefinition):
        raise BuildError(f"custom resource {cls.__qualname__}", ["the class has no @custom_resource(...)"])
    return definition


def _validate_names(definition: ResourceDefinition) -> list[str]:
    gvk = definition.gvk
    mistakes = []
    if not _GROUP.fullmatch(gvk.group):
        mistakes.append(f"group: expected a DNS name with a dot, such as apps.example.com, found {gvk.group!r}")
    if not _LABEL.fullmatch(gvk.version):
        mistakes.append(f"version: expected a name such as v1alpha1, found {gvk.version!r}")
    if not _KIND.fullmatch(gvk.kind):
        mistakes.append(f"kind: expected a name in CamelCase, found {gvk.kind!r}")
    for what, name in [("plural", definition.plural), *(("short name", name) for name in definition.short_names)]:
        if not _LABEL.fullmatch(name):
            mistakes.append(f"{what}: expected lower-case letters, digits and dashes, found {name!r}")
    return mistakes


def _validate_versions(definition: ResourceDefinition) -> list[str]:
    """Return the errors of the other versions of this kind."""
    mistakes = []
    if definition.also_serves and not definition.is_served:
        mistakes.append("served: expected True for the stored version of several, found False")
    name = definition.cls.__qualname__
    taken = {definition.gvk.version: definition.cls}
    for cls in definition.also_serves:
        try:
            other = find_definition(cls)
        except BuildError:
            mistakes.append(f"also_serves: {cls.__qualname__} has no @custom_resource(...)")
            continue
        same = taken.setdefault(other.gvk.version, cls)
        if same is not cls:
            mistakes.append(
                f"also_serves: {cls.__qualname__} is {other.gvk.version} as well as {same.__qualname__}; "
                "expected one class a version"
            )
        mistakes += [
            f"also_serves: {cls.__qualname__} has {what} {found!r}, expected {expected!r} as {name}"
            for what, found, expected in _iter_common_properties(other, definition)
            if found != expected
        ]
        if other.also_serves:
            mistakes.append(f"also_serves: {cls.__qualname__} has versions itself; list them all on the stored one")
    if len(set(definition.also_serves)) < len(definition.also_serves):
        mistakes.append("also_serves: a class is listed twice")
    return mistakes


def _iter_common_properties(one: ResourceDefinition, other: ResourceDefinition) -> Iterator[tuple[str, object, object]]:
    """Yield the properties that all versions share; the names for kubectl come from the stored version only."""
    yield "group", one.gvk.group, other.gvk.group
    yield "kind", one.gvk.kind, other.gvk.kind
    yield "plural", one.plural, other.plural
    scopes = {True: "Namespaced", False: "Cluster"}
    yield "scope", scopes[one.namespaced], scopes[other.namespaced]


def _read_schema(cls: type) -> tuple[Object, list[str]]:
    """Return the schema of the class and the errors of the class."""
    try:
        info = read_class_type(cls)
    except (NameError, TypeError) as problem:
        return {}, [f"its type hints cannot be read: {problem}"]
    if info is None:
        return {}, [f"expected {CLASSES} (does @custom_resource stand above @dataclass?)"]
    fields = {found.name: found for found in info.fields}
    mistakes = [
        f"{name}: a custom resource has metadata, spec and status only" for name in fields if name not in _FIELDS
    ]
    metadata = fields.get("metadata")
    if metadata is None or not (isinstance(metadata.type, inspect.StructType) and metadata.type.cls is Metadata):
        mistakes.append("metadata: expected a field `metadata: Metadata`")
    schema = build_object_schema(info, "", mistakes)
    properties = schema.get("properties", {})
    if properties.get("spec", {}).get("type") != "object":
        mistakes.append(f"spec: expected a field `spec` of {CLASSES}")
    if properties.get("status", {"type": "object"}).get("type") != "object":
        mistakes.append(f"status: expected {CLASSES}")
    if "status" in fields and fields["status"].required:
        mistakes.append("status: expected a default, since a new object has no status")
    return schema, mistakes
