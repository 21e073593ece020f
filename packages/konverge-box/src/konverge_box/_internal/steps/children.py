"""The ``children`` in expressions of the status: the objects that a box has created.

``children.deployment`` is the first existing Deployment in the order of the file, ``children.deployments`` contains
all by name. Only the kinds that the status refers to are read, from the caches that the components use anyway.

The key of an object in the custom resource's namespace, or of a cluster-scoped one, is its name; of any other object
``namespace/name``. If the file has several kinds under ``custom``, the kind comes first: ``Certificate/web``. So a new
object never changes the key of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.secret_redaction import LAST_APPLIED, SECRET_FIELDS
from konverge._internal.kube.secret_values import SecretValues
from konverge.errors import KindNotServedError, KindUnreachableError, NotFoundError
from konverge_box._internal.expressions import to_sensitive
from konverge_box._internal.file import KINDS, BoxKind, BoxResource, Group, find_child_kind
from konverge_box._internal.steps.object_reader import ObjectReader
from konverge_box._internal.steps.ownership import is_ours

__all__ = ["Child", "ChildrenReader", "to_expression_value"]


class Child(NamedTuple):
    """A planned object.

    Args:
        resource: The entry of the file that declares it.
        key: Its namespace and name.
        is_desired: It should exist. Otherwise an object of that name is included only while it belongs to the custom
            resource.
    """

    resource: BoxResource
    key: ObjectKey
    is_desired: bool = True


class ChildrenReader:
    """The reader of the children that the status of a custom resource refers to.

    Args:
        groups: The groups of ``onCreate`` and then of ``onReconcile``.
        names: The paths that the status reads (`steps.status_fields.StatusFields.list_read_paths`).
    """

    def __init__(self, groups: Iterable[Group], names: Iterable[tuple[str, ...]]) -> None:
        declared: dict[str, list[GroupVersionKind]] = {}
        for group in groups:
            for resource in group.resources:
                kinds = declared.setdefault(resource.kind, [])
                if resource.gvk not in kinds:
                    kinds.append(resource.gvk)
        named = _find_kind_keys(names)
        self._kinds = {key: kinds for key, kinds in declared.items() if named is None or key in named}

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds that are read."""
        return frozenset(gvk for kinds in self._kinds.values() for gvk in kinds)

    async def read(
        self, owner: Object, planned: Sequence[Child], reader: ObjectReader, secrets: SecretValues | None = None
    ) -> dict[str, Any]:
        """Return the value of ``children`` in this reconcile.

        Args:
            owner: The custom resource.
            planned: The planned objects, in the order of the file.
            reader: Reads from the caches.
            secrets: Secret values that are redacted in the conditions of the objects.

        Raises:
            konverge.errors.KonvergeError: A served kind could not be read.
        """
        children: dict[str, Any] = {}
        for key, kinds in self._kinds.items():
            kind = KINDS[key]
            live = await _list_existing(owner, [each for each in planned if each.resource.kind == key], reader)
            seen = [to_expression_value(obj, secrets) for obj in live]
            children[kind.singular] = seen[0] if seen else {"metadata": {}, "status": {}}
            children[kind.plural] = {_format_key(obj, owner, names_kind=len(kinds) > 1): obj for obj in seen}
        return children


def _find_kind_keys(names: Iterable[tuple[str, ...]]) -> frozenset[str] | None:
    """Return the keys of the kinds that are read; None when they depend on a value, as for ``children[spec.kind]``."""
    of_children = [name[1:] for name in names if name[:1] == ("children",)]
    kinds: list[BoxKind | None] = [find_child_kind(name[0]) if name else None for name in of_children]
    return None if None in kinds else frozenset(kind.key for kind in kinds if kind is not None)


async def _list_existing(owner: Object, planned: Iterable[Child], reader: ObjectReader) -> list[Object]:
    existing: dict[tuple[GroupVersionKind, ObjectKey], Object] = {}
    for child in planned:
        identity = child.resource.gvk, child.key
        if identity in existing:
            continue  # several entries can declare variants of one object
        try:
            live = await reader.get(*identity)
        except KindUnreachableError:
            raise  # the status fields keep their values
        except (NotFoundError, KindNotServedError):
            continue
        if child.is_desired or is_ours(live, owner):
            existing[identity] = live
    return list(existing.values())


def to_expression_value(obj: Object, secrets: SecretValues | None = None) -> Object:
    """Convert an object to its value in expressions: always with a ``status``, and with sensitive Secret values."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    status = obj.get("status")
    status = dict(status) if isinstance(status, dict) else {}
    if isinstance(conditions := status.get("conditions"), list):
        # Conditions repeat the messages of admission about an object's Pods, which can quote secret values.
        status["conditions"] = [_redact_condition(condition, secrets or SecretValues()) for condition in conditions]
    seen = {**obj, "metadata": metadata, "status": status}
    if GroupVersionKind.of(obj).is_secret:
        for name in SECRET_FIELDS:
            if name in seen:
                seen[name] = to_sensitive(seen[name])
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict) and LAST_APPLIED in annotations:  # it contains the whole Secret
            metadata["annotations"] = {**annotations, LAST_APPLIED: to_sensitive(annotations[LAST_APPLIED])}
    return seen


def _redact_condition(condition: Any, secrets: SecretValues) -> Any:
    if not isinstance(condition, dict) or not isinstance(message := condition.get("message"), str):
        return condition
    return {**condition, "message": secrets.hide(message)}


def _format_key(obj: Object, owner: Object, *, names_kind: bool) -> str:
    key = ObjectKey.of(obj)
    name = key.name if key.namespace in ("", ObjectKey.of(owner).namespace) else f"{key.namespace}/{key.name}"
    return f"{obj['kind']}/{name}" if names_kind else name
