"""The resources that are served, and how requests find them: by path, by kind, by storage name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from konverge.apply import Schema
from konverge.apply.schema import DEDUCED
from konverge.errors import KindNotServedError
from konverge.kube import GroupVersionKind, Object, RestMapping
from konverge_cluster.embedded.storage_conversion import StorageConversion

__all__ = ["Column", "Kind", "ResourceRegistry", "ScalePaths", "ServedResource"]

Kind: TypeAlias = GroupVersionKind | RestMapping
"""How a caller names a resource: by the kind of its objects, or by what discovery said of it."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom resource keeps what its scale subresource shows, each as the names that lead there.

    Attributes:
        spec: The wanted number of replicas.
        status: The number of replicas that there are.
        selector: The label selector in its text form; empty when there is none.
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
        mapping: Where it is served.
        storage: The name under which its objects are stored, for example ``deployments.apps``; versions share it.
        has_generation: Whether ``metadata.generation`` counts the changes of what was asked for.
        creates_on_update: Whether PUT to a name that does not exist creates.
        unconditional_update: Whether PUT without a resourceVersion is accepted.
        selectable_fields: What a field selector may name beside the name and the namespace.
        schema: What its objects look like.
        is_custom: Whether a CustomResourceDefinition made it.
        scale: For custom resources: where the scale subresource finds its numbers.
        columns: For custom resources: what tables show beside the name.
        list_kind_override: The kind of its lists, when that is not simply the kind with ``List`` behind it.
        conversion: How its form and the stored one become each other; None when they are the same.
        has_schema_defaults: Whether the defaults of a built-in kind are in its schema.
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
        """The kind of its objects."""
        return self.mapping.gvk

    @property
    def qualified_name(self) -> str:
        """``deployments.apps``, or ``pods`` in the core group: the name that messages use."""
        return f"{self.mapping.plural}.{self.gvk.group}" if self.gvk.group else self.mapping.plural

    @property
    def qualified_kind(self) -> str:
        """``Deployment.apps``, or ``Pod`` in the core group: the kind that messages use."""
        return f"{self.gvk.kind}.{self.gvk.group}" if self.gvk.group else self.gvk.kind

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.list_kind_override or f"{self.gvk.kind}List"

    def to_served(self, obj: Object) -> Object:
        """A stored object in the form that this resource serves; not to be changed, it may be the stored one."""
        return obj if self.conversion is None else self.conversion.from_stored(obj)

    def to_stored(self, obj: Object) -> Object:
        """A served object in the form in which it is stored."""
        return obj if self.conversion is None else self.conversion.to_stored(obj)


@dataclass
class ResourceRegistry:
    """The registry: the built-in resources, and those of the CustomResourceDefinitions while they are established."""

    _by_gvk: dict[GroupVersionKind, ServedResource] = field(default_factory=dict)
    _by_path: dict[tuple[str, str, str], ServedResource] = field(default_factory=dict)
    _changes: int = 0

    @property
    def revision(self) -> str:
        """Another text after each change."""
        return str(self._changes)

    @classmethod
    def from_resources(cls, resources: Iterable[ServedResource]) -> ResourceRegistry:
        """A registry that serves these."""
        registry = cls()
        for resource in resources:
            registry.add(resource)
        return registry

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(self._by_gvk.values())

    def add(self, resource: ServedResource) -> None:
        """Serve a resource, in the place of an earlier one of the same kind."""
        self._changes += 1
        self._by_gvk[resource.gvk] = resource
        self._by_path[resource.gvk.group, resource.gvk.version, resource.mapping.plural] = resource

    def remove(self, matches: Callable[[ServedResource], bool]) -> None:
        """Serve the matching resources no longer."""
        for resource in [found for found in self if matches(found)]:
            self._changes += 1
            del self._by_gvk[resource.gvk]
            del self._by_path[resource.gvk.group, resource.gvk.version, resource.mapping.plural]

    def get_by_kind(self, kind: Kind) -> ServedResource:
        """The resource of that kind.

        Raises:
            KindNotServedError: There is none.
        """
        gvk = kind.gvk if isinstance(kind, RestMapping) else kind
        found = self._by_gvk.get(gvk)
        if found is None:
            raise KindNotServedError(f"the server does not serve {gvk}")
        return found

    def find_by_path(self, group: str, version: str, plural: str) -> ServedResource | None:
        """The resource of a URL path, None when there is none."""
        return self._by_path.get((group, version, plural))

    def list_by_storage(self, storage: str) -> tuple[ServedResource, ...]:
        """The versions of the resource of that storage name."""
        return tuple(found for found in self if found.storage == storage)
