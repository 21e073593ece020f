"""What expressions of the status see of the objects that a box has made: ``children``.

``children.deployment`` is the first Deployment in the order of the file that exists, ``children.deployments`` has all
by name. Only the kinds that the status names are read, from the caches that the components fill anyhow.

Names are told apart by namespace: an object in the custom resource's own, or in none, has its name as key, any other
``namespace/name``. Where the file has several kinds under ``custom``, the kind comes first: ``Certificate/web``. So an
object never changes its key because another one comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from konverge.errors import KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.secret_redaction import LAST_APPLIED, SECRET_FIELDS
from konverge.kube.secret_values import SecretValues
from konverge_box.expressions import to_sensitive
from konverge_box.file import KINDS, BoxKind, BoxResource, Group, find_child_kind
from konverge_box.steps.object_reader import ObjectReader
from konverge_box.steps.ownership import is_ours

__all__ = ["Child", "ChildrenReader"]


class Child(NamedTuple):
    """An object that a pass has planned.

    Args:
        resource: What of the file it was made from.
        key: Which object it is.
        is_desired: It is to be there; if not, one of that name is shown only as long as it is the custom resource's.
    """

    resource: BoxResource
    key: ObjectKey
    is_desired: bool = True


class ChildrenReader:
    """The children of one custom resource that its status looks at.

    Args:
        groups: The groups of ``onCreate`` and then of ``onReconcile``.
        names: The paths that the status reads (`konverge_box.steps.status_fields.StatusFields.names`).
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
        """What ``children`` is in this pass.

        Args:
            owner: The custom resource.
            planned: The objects of the pass's plan, in the order of the file.
            reader: Reads from the caches.
            secrets: Values that are hidden in what controllers report of the objects.

        Raises:
            konverge.errors.KonvergeError: A kind that is served could not be read.
        """
        children: dict[str, Any] = {}
        for key, kinds in self._kinds.items():
            kind = KINDS[key]
            live = await _list_existing(owner, [each for each in planned if each.resource.kind == key], reader)
            seen = [_to_expression_value(obj, secrets or SecretValues()) for obj in live]
            children[kind.singular] = seen[0] if seen else {"metadata": {}, "status": {}}
            children[kind.plural] = {_format_key(obj, owner, names_kind=len(kinds) > 1): obj for obj in seen}
        return children


def _find_kind_keys(names: Iterable[tuple[str, ...]]) -> frozenset[str] | None:
    """The keys of the kinds that are read; None when that cannot be told beforehand, as for ``children[spec.kind]``."""
    of_children = [name[1:] for name in names if name[:1] == ("children",)]
    kinds: list[BoxKind | None] = [find_child_kind(name[0]) if name else None for name in of_children]
    return None if None in kinds else frozenset(kind.key for kind in kinds if kind is not None)


async def _list_existing(owner: Object, planned: Iterable[Child], reader: ObjectReader) -> list[Object]:
    found: dict[tuple[GroupVersionKind, ObjectKey], Object] = {}
    for child in planned:
        identity = child.resource.gvk, child.key
        if identity in found:
            continue  # variants of one object, of which one is wanted
        try:
            live = await reader.get(*identity)
        except KindUnreachableError:
            raise  # fields keep what they had
        except (NotFoundError, KindNotServedError):
            continue
        if child.is_desired or is_ours(live, owner):
            found[identity] = live
    return list(found.values())


def _to_expression_value(obj: Object, secrets: SecretValues) -> Object:
    """An object as expressions see it: always with a ``status``, and with nothing of a Secret readable."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    status = obj.get("status")
    status = dict(status) if isinstance(status, dict) else {}
    if isinstance(conditions := status.get("conditions"), list):
        # What admission says of an object's Pods stands here, with the values that it quotes.
        status["conditions"] = [_redact_condition(condition, secrets) for condition in conditions]
    seen = {**obj, "metadata": metadata, "status": status}
    if GroupVersionKind.of(obj).is_secret:
        for name in SECRET_FIELDS:
            if name in seen:
                seen[name] = to_sensitive(seen[name])
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict) and LAST_APPLIED in annotations:  # what kubectl applied is all in there
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
