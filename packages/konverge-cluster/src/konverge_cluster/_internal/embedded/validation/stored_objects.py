"""Validation of existing custom resources against a definition that is not installed yet.

The rules are those of a write to the server (`object_validation`), so that a definition is judged before it is applied.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from konverge._internal.apply import with_schema_defaults
from konverge._internal.kube import Object
from konverge.errors import InvalidError
from konverge_cluster._internal.embedded.custom_resources import accept_names, build_resources
from konverge_cluster._internal.embedded.pruning import prune
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation.object_validation import check_create, check_update

__all__ = ["ObjectCheck", "StoredObjectValidator"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ObjectCheck:
    """The result for one object.

    Attributes:
        object: The object as the server would return it: without unknown fields, with the defaults.
        dropped: The paths of the fields that no schema declares.
        errors: The errors as those of a new object, each a field and the server's message.
        lasting: The errors of a write that changes nothing: they are not ratcheted.
        skipped: The rules that were not evaluated, each with the reason.
    """

    object: Object
    dropped: tuple[str, ...]
    errors: tuple[tuple[str, str], ...]
    lasting: tuple[tuple[str, str], ...]
    skipped: tuple[str, ...]


class StoredObjectValidator:
    """The validation of objects by one definition.

    Args:
        definition: The definition; its status does not count.
    """

    def __init__(self, definition: Object) -> None:
        established = {**copy.deepcopy(definition), "status": {}}
        for version in established["spec"]["versions"]:
            version["served"] = True  # a version that is no longer served still validates what is stored
        accept_names(established, (), _EPOCH)
        self._resources: Mapping[str, ServedResource] = {
            resource.gvk.api_version: resource for resource in build_resources(established)
        }

    def validates(self, api_version: str) -> bool:
        """Return True if the definition has this version."""
        return api_version in self._resources

    def check(self, obj: Object) -> ObjectCheck:
        """Validate an object of one of the versions; the object is not changed."""
        resource = self._resources[obj["apiVersion"]]
        known: Object = copy.deepcopy({name: value for name, value in obj.items() if name != "metadata"})
        dropped = prune(known, resource.schema)
        known = with_schema_defaults({**known, "metadata": obj["metadata"]}, resource.schema)
        known["metadata"] = obj["metadata"]
        warnings: list[str] = []
        errors: tuple[tuple[str, str], ...] = ()
        lasting: tuple[tuple[str, str], ...] = ()
        try:
            check_create(resource, known, warnings)
        except InvalidError as error:
            errors = _list_causes(error)
            lasting = _find_lasting(resource, known)
        skipped = tuple(warning for warning in warnings if warning.startswith("konverge: "))
        return ObjectCheck(known, tuple(dropped), errors, lasting, skipped)


def _find_lasting(resource: ServedResource, obj: Object) -> tuple[tuple[str, str], ...]:
    try:
        check_update(resource, obj, obj, [], sent=obj)
    except InvalidError as error:
        return _list_causes(error)
    return ()


def _list_causes(error: InvalidError) -> tuple[tuple[str, str], ...]:
    return tuple((cause.field, cause.message) for cause in error.causes)
