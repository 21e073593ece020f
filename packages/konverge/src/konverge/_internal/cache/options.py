"""The cache options of a kind: the objects to cache, and how much of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from konverge._internal.kube import Object
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.kube.selectors import FieldSelector, LabelSelector, SelectorSyntaxError
from konverge.errors import ConfigurationError

__all__ = ["CacheOptions", "CacheSelection", "Transform"]

Transform: TypeAlias = Callable[[Object], Object]
"""A function that receives an object as the server sent it, and returns what to cache; it may change its argument."""


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """The cache options of one kind.

    Args:
        namespaces: The namespaces to cover, with one list and watch each; empty for those of the
            `konverge.cache.InformerFactory`. Cluster-scoped kinds ignore it.
        label_selector: The labels of the objects to cache, for example ``app=web,tier in (a, b)``. The server selects,
            so other objects cost nothing; a read does not find them (`konverge.cache.Informer.read`).
        field_selector: The fields of the objects to cache, for example ``spec.nodeName=node-1``. The server decides
            which fields it supports.
        metadata_only: Whether to request only the metadata (``PartialObjectMetadata``). Reads then return only
            apiVersion, kind and metadata, also after own writes.
        transform: A function that changes each object before it is cached, for example to leave out unused fields. The
            object's identity, its version and the fields of the selectors stay as the server sent them. An object for
            which the function raises an error is not cached.

    Raises:
        konverge.errors.ConfigurationError: A selector cannot be parsed.
    """

    namespaces: tuple[str, ...] = ()
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    transform: Transform | None = None

    def __post_init__(self) -> None:
        for name, parse in (("label_selector", LabelSelector.parse), ("field_selector", FieldSelector.parse)):
            try:
                parse(getattr(self, name))
            except SelectorSyntaxError as error:
                raise ConfigurationError(f"{name}: {error}") from None


# Fields whose values are in the metadata. Only the server knows the meaning of other fields: status.successful of a Job
# is status.succeeded of the object, and some unset fields count as "false".
_METADATA_FIELDS = frozenset({"metadata.name", "metadata.namespace"})


class CacheSelection:
    """A predicate for own writes: whether the selectors of the collection match the written object.

    The response to a write does not show it, and the watch never reports objects that the selectors do not match. If
    the store accepted such an object by mistake, it would keep the object forever.

    Args:
        options: The cache options with the selectors.
    """

    def __init__(self, options: CacheOptions) -> None:
        self._labels = LabelSelector.parse(options.label_selector)
        requirements = FieldSelector.parse(options.field_selector).requirements
        self._fields = FieldSelector(tuple(each for each in requirements if each.field in _METADATA_FIELDS))
        self._is_decidable = len(self._fields.requirements) == len(requirements)

    def includes(self, meta: ObjectMeta, *, is_held: bool) -> bool:
        """Return True if the selectors match the object.

        Args:
            meta: The metadata of the object after the write.
            is_held: Whether an earlier state of the object is cached. The watch then reports if it stops matching. If
                the metadata does not decide the field selector, only a cached object matches.
        """
        if not (self._is_decidable or is_held):
            return False
        values = {"metadata.name": meta.name, "metadata.namespace": meta.namespace}
        return self._labels.matches(meta.labels) and self._fields.matches(values.__getitem__)
