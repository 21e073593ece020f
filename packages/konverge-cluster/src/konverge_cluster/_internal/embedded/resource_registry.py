"""The registry of served resources, with lookups by path, by kind and by storage name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from konverge._internal.apply import Schema
from konverge._internal.apply.schema import DEDUCED
from konverge._internal.kube import GroupVersionKind, Object, RestMapping
from konverge.errors import KindNotServedError
from konverge_cluster._internal.embedded.storage_conversion import StorageConversion

__all__ = ["Column", "Kind", "ResourceRegistry", "ScalePaths", "ServedResource"]

Kind: TypeAlias = GroupVersionKind | RestMapping
"""The reference of a caller to a resource: the kind of its objects, or a mapping from discovery."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The field paths of the scale subresource in a custom resource, each as a sequence of names.

    Attributes:
        spec: The desired number of replicas.
        status: The current number of replicas.
        selector: The label selector in its text form; empty for none.
    """

    spec: tuple[str, ...]
    status: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a CustomResourceDefinition adds to tables (``additionalPrinterColumns``)."""

    name: str
    type: str
    path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One resource in one version.

    Attributes:
        mapping: The mapping of the kind to its path.
        storage: The name under which objects are stored, for example ``deployments.apps``; all versions share it.
        has_generation: True if ``metadata.generation`` counts the changes of the spec.
        creates_on_update: True if PUT creates an object that does not exist.
        unconditional_update: True if PUT without a resourceVersion is accepted.
        selectable_fields: The fields for field selectors, in addition to name and namespace.
        schema: The schema of the objects.
        is_custom: True if a CustomResourceDefinition defines the resource.
        scale: For custom resources: the field paths of the scale subresource.
        columns: For custom resources: the table columns after the name.
        list_kind_override: The kind of its lists, if it is not the kind followed by ``List``.
        conversion: The conversion between the served and the stored form; None if they are the same.
        has_schema_defaults: True if the schema of a built-in kind contains its defaults.
    """

    mapping: RestMapping
    storage: str
    has_generation: bool = False
    creates_on_update: bool = False
    unconditional_update: bool = True
    selectable_fields: tuple[str, ...] = ()
    schema: Schema = DEDUCED
    is_custom: bool = False
    scale: ScalePaths | None = None
    columns: tuple[Column, ...] = ()
    list_kind_override: str = ""
    conversion: StorageConversion | None = None
    has_schema_defaults: bool = False

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of the objects."""
        return self.mapping.gvk

    @property
    def qualified_name(self) -> str:
        """The name for messages, for example ``deployments.apps``, or ``pods`` in the core group."""
        return f"{self.mapping.plural}.{self.gvk.group}" if self.gvk.group else self.mapping.plural

    @property
    def qualified_kind(self) -> str:
        """The kind for messages, for example ``Deployment.apps``, or ``Pod`` in the core group."""
        return f"{self.gvk.kind}.{self.gvk.group}" if self.gvk.group else self.gvk.kind

    @property
    def list_kind(self) -> str:
        """The kind of the resource's lists."""
        return self.list_kind_override or f"{self.gvk.kind}List"

    def to_served(self, obj: Object) -> Object:
        """Return a stored object in the served form. It must not be changed: it can be the stored object itself."""
        return obj if self.conversion is None else self.conversion.from_stored(obj)

    def to_stored(self, obj: Object) -> Object:
        """Return a served object in the form in which it is stored."""
        return obj if self.conversion is None else self.conversion.to_stored(obj)


@dataclass
class ResourceRegistry:
    """The registry: the built-in resources and those of established CustomResourceDefinitions."""

    _by_gvk: dict[GroupVersionKind, ServedResource] = field(default_factory=dict)
    _by_path: dict[tuple[str, str, str], ServedResource] = field(default_factory=dict)
    _changes: int = 0

    @property
    def revision(self) -> str:
        """A text that changes with each change of the registry."""
        return str(self._changes)

    @classmethod
    def from_resources(cls, resources: Iterable[ServedResource]) -> ResourceRegistry:
        """Return a registry with these resources."""
        registry = cls()
        for resource in resources:
            registry.add(resource)
        return registry

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(self._by_gvk.values())

    def add(self, resource: ServedResource) -> None:
        """Serve a resource; it replaces an earlier one of the same kind."""
        self._changes += 1
        self._by_gvk[resource.gvk] = resource
        self._by_path[resource.gvk.group, resource.gvk.version, resource.mapping.plural] = resource

    def remove(self, matches: Callable[[ServedResource], bool]) -> None:
        """Stop serving the matching resources."""
        for resource in [served for served in self if matches(served)]:
            self._changes += 1
            del self._by_gvk[resource.gvk]
            del self._by_path[resource.gvk.group, resource.gvk.version, resource.mapping.plural]

    def get_by_kind(self, kind: Kind) -> ServedResource:
        """Return the resource of that kind.

        Raises:
            KindNotServedError: The kind is not served.
        """
        gvk = kind.gvk if isinstance(kind, RestMapping) else kind
        resource = self._by_gvk.get(gvk)
        if resource is None:
            raise KindNotServedError(f"the server does not serve {gvk}")
        return resource

    def find_by_path(self, group: str, version: str, plural: str) -> ServedResource | None:
        """Return the resource of a URL path; None if there is none."""
        return self._by_path.get((group, version, plural))

    def list_by_storage(self, storage: str) -> tuple[ServedResource, ...]:
        """Return the versions of the resource with that storage name."""
        return tuple(resource for resource in self if resource.storage == storage)
