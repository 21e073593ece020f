"""What of a kind is held: which objects, and how much of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge.kube.metadata import ObjectMeta
from konverge.kube.selectors import FieldSelector, LabelSelector, SelectorSyntaxError

__all__ = ["CacheOptions", "CacheSelection", "Transform"]

Transform: TypeAlias = Callable[[Object], Object]
"""Gets an object as the server sent it, and returns what is to be held of it; it may change what it gets."""


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """How a kind is held.

    Args:
        namespaces: Only objects of these, with one list and watch each; empty for those of the whole set
            (`konverge.cache.InformerFactory`). Nothing to a kind without namespaces.
        label_selector: Only objects with such labels, for example ``app=web,tier in (a, b)``. The server selects, so
            what is outside costs nothing; a read of it finds nothing (`konverge.cache.Informer.read`).
        field_selector: Only objects with such fields, for example ``spec.nodeName=node-1``; which fields can be asked
            for is the server's to say.
        metadata_only: Have the server send no more than the metadata (``PartialObjectMetadata``). Reads then give
            apiVersion, kind and metadata, own writes included.
        transform: Changes each object before it is held, for example to leave out what nobody reads. Which object it
            is, its version, and what it is selected by stay those that the server sent. An object on which it fails is
            not held.

    Raises:
        konverge.errors.ConfigurationError: A selector cannot be read.
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


# Fields whose values are known from the metadata. What the others stand for is the server's secret: a Job's
# status.successful is status.succeeded of the object, and unset counts as "false" in some.
_METADATA_FIELDS = frozenset({"metadata.name", "metadata.namespace"})


class CacheSelection:
    """Says whether what we have written is in the selected part of the collection.

    The server does not say it in its answer, and the watch says nothing of what is outside: let in by mistake, an
    object would stay for ever.

    Args:
        options: With the selectors.
    """

    def __init__(self, options: CacheOptions) -> None:
        self._labels = LabelSelector.parse(options.label_selector)
        requirements = FieldSelector.parse(options.field_selector).requirements
        self._fields = FieldSelector(tuple(found for found in requirements if found.field in _METADATA_FIELDS))
        self._is_decidable = len(self._fields.requirements) == len(requirements)

    def includes(self, meta: ObjectMeta, *, is_held: bool) -> bool:
        """Tell whether the object of that metadata belongs to it.

        Args:
            meta: The object after the write.
            is_held: Whether an earlier state of it is held. Then the watch will tell when it leaves; where the fields
                do not show whether an object belongs, only such a one is taken.
        """
        if not (self._is_decidable or is_held):
            return False
        values = {"metadata.name": meta.name, "metadata.namespace": meta.namespace}
        return self._labels.matches(meta.labels) and self._fields.matches(values.__getitem__)
