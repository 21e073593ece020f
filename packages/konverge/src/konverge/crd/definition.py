"""What makes a class a custom resource: its group, version, kind and names, and how kubectl shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from msgspec import inspect

from konverge.crd.api_names import to_plural
from konverge.crd.class_types import CLASSES, read_class_type
from konverge.crd.constraints import CelRule
from konverge.crd.resource_metadata import Metadata
from konverge.crd.schema_generation import build_object_schema
from konverge.crd.schema_validation import validate_schema
from konverge.crd.subresources import Scale, validate_scale, validate_selectable_fields
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, Object, RestMapping

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
        name: The heading.
        type: ``string``, ``integer``, ``number``, ``boolean`` or ``date``.
        json_path: Where the value is, for example ``.spec.replicas``.
        description: Shown by ``kubectl explain``-like tools.
        priority: 0 shows always, more only with ``-o wide``.
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
    """What `custom_resource` recorded about a class.

    `schema` is the structural schema of the class by itself: without the API's own fields and without conditions.
    `deprecation` is the warning that the server sends with each answer of a deprecated version: empty for its own
    words, None when the version is not deprecated. What `is_external` the cluster has already, and whoever put it there
    looks after its CustomResourceDefinition.
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

    @property
    def versions(self) -> tuple[ResourceDefinition, ...]:
        """The declarations of all versions of the kind: this one, which is stored, and then the others in order."""
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
        """Where a server that has the definition serves the kind."""
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
) -> Callable[[type[T]], type[T]]:
    """Declare that a class is a custom resource; the class itself stays as it is.

    It stands above ``@dataclass`` or ``@attrs.define``, or on a `msgspec.Struct` or a pydantic model; the classes of
    its fields may be of any of these kinds. The class has the fields
    ``metadata: Metadata`` and ``spec``, and may have ``status`` for what it reports besides conditions::

        @custom_resource(group="demo.konverge.dev", version="v1alpha1")
        @dataclass
        class WebApp:
            metadata: Metadata
            spec: WebAppSpec

    Args:
        group: The API group; it has a dot.
        version: The API version, for example ``v1alpha1``.
        kind: The kind; the name of the class when not given.
        plural: The resource's name in URLs; guessed from the kind when not given.
        scope: Whether objects live in a namespace.
        short_names: What kubectl accepts instead of the plural.
        categories: Groups of kinds for kubectl, for example ``all``.
        print_columns: Columns of ``kubectl get`` after the name.
        rules: CEL rules over the whole object; ``self`` has spec, status and metadata, of which the server lets rules
            see only name and generateName.
        scale: Where ``kubectl scale`` and autoscalers find their numbers; None for no such subresource.
        selectable_fields: Paths such as ``.spec.tier`` by which ``--field-selector`` may select; 8 at most.
        served: Whether clients may use this version; for one of `also_serves` that is on its way out.
        deprecated: Whether the server warns each user of this version, and with which words if these are not its own.
        also_serves: Classes under `custom_resource` that are other versions of this kind. This class is the version
            that is stored. Where they differ in more than fields that one of them lacks, objects need a conversion
            webhook; without it, the server keeps what both have under one name and drops the rest.

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
    """Make the definition that of its class.

    Args:
        definition: The declaration.
        errors: What is wrong with it already.

    Raises:
        BuildError: It cannot be served; it lists every mistake.
    """
    found = [*([] if definition.is_external else _validate_names(definition)), *errors]
    if found:
        raise BuildError(f"custom resource {definition.cls.__qualname__}", found)
    setattr(definition.cls, _ATTRIBUTE, definition)


def find_definition(cls: type[Any]) -> ResourceDefinition:
    """The declaration of a custom resource class.

    Raises:
        BuildError: The class (itself, not one that it derives from) was not declared.
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
    """Why the other versions are not versions of this kind."""
    mistakes = []
    if definition.also_serves and not definition.is_served:
        mistakes.append("served: the stored version of several is served, or nobody could write in its words")
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
    """What a definition says once for all versions; names that only kubectl needs are taken from the stored one."""
    yield "group", one.gvk.group, other.gvk.group
    yield "kind", one.gvk.kind, other.gvk.kind
    yield "plural", one.plural, other.plural
    scopes = {True: "Namespaced", False: "Cluster"}
    yield "scope", scopes[one.namespaced], scopes[other.namespaced]


def _read_schema(cls: type) -> tuple[Object, list[str]]:
    """The schema of the class and what is wrong with the class."""
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
