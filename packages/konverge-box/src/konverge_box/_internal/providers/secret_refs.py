"""References to values of Secrets in the file: ``{secretRef: {name: …, key: …}}`` in place of a value.

Only the file can contain a reference. The result of an expression is never treated as one: otherwise the author of a
custom resource could read any Secret.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge.errors import NotFoundError
from konverge_box._internal.expressions import Sensitive, Template, compile_expression
from konverge_box._internal.expressions.values import describe_value_type
from konverge_box._internal.steps import ObjectReader, Scope, StepError

__all__ = ["MissingSecretError", "SecretReference", "extract_secret_references", "read_secret"]

_SECRET = GroupVersionKind("", "v1", "Secret")
_MARK = "secretRef"
_FIELDS = frozenset({"name", "key", "namespace"})


class MissingSecretError(StepError):
    """An error about a Secret or a key that does not exist yet. The Secret is watched, so that no retry is needed."""


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A reference to a value of a Secret, whose name and namespace can be expressions.

    Args:
        path: The path of the value in the declaration.
        where: Its path in the file.
        name: The name of the Secret.
        key: The key in the Secret.
        namespace: The namespace of the Secret; None for the owner's.
    """

    path: tuple[str, ...]
    where: str
    name: Template
    key: Template
    namespace: Template | None

    async def resolve_into(self, into: dict[str, Any], scope: Scope, namespace: str, reader: ObjectReader) -> None:
        """Read the value and insert it at its path.

        Args:
            into: The declaration without references, which is changed.
            scope: The scope of the expressions.
            namespace: The owner's namespace.
            reader: Reads the Secret. Its later changes queue the owner.

        Raises:
            MissingSecretError: The Secret or the key does not exist.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        name, key = (self._render_text(scope.render(each)) for each in (self.name, self.key))
        if self.namespace is not None:
            namespace = self._render_text(scope.render(self.namespace))
        *parents, last = self.path
        for parent in parents:
            into = into.setdefault(parent, {})
        into[last] = await read_secret(reader, ObjectKey(namespace, name), key, self.where)

    def _render_text(self, value: Any) -> str:
        if type(value) is not str or not value:
            raise StepError(
                self.where, f"expected the name of a Secret and of a key in it, found {describe_value_type(value)}"
            )
        return value


async def read_secret(reader: ObjectReader, secret: ObjectKey, key: str, where: str) -> Sensitive:
    """Read the value of a key as text.

    Raises:
        MissingSecretError: The Secret or the key does not exist.
        StepError: The value is not text.
    """
    if not secret.namespace:
        raise StepError(
            where, f"Secret {secret.name}: expected a namespace, found none: the custom resource is cluster-scoped"
        )
    try:
        live = await reader.get(_SECRET, secret)
    except NotFoundError:
        raise MissingSecretError(where, f"waiting for Secret {secret}") from None
    encoded = (live.get("data") or {}).get(key)
    if encoded is None:
        raise MissingSecretError(where, f"waiting for key {key} in Secret {secret}")
    try:
        return Sensitive(base64.b64decode(encoded).decode())
    except ValueError:
        raise StepError(where, f"Secret {secret}, key {key}: expected UTF-8 text, found binary data") from None


def extract_secret_references(
    declared: Mapping[str, Any], where: str, path: tuple[str, ...] = ()
) -> tuple[dict[str, Any], tuple[SecretReference, ...]]:
    """Split a declaration into the part without references, and the references.

    Raises:
        StepError: A reference is invalid.
    """
    rest: dict[str, Any] = {}
    references: list[SecretReference] = []
    for name, value in declared.items():
        inner = f"{where}.{name}"
        if not isinstance(value, Mapping):
            rest[name] = value
        elif value.keys() == {_MARK}:
            references.append(_parse_reference(value[_MARK], inner, (*path, name)))
        else:
            rest[name], more = extract_secret_references(value, inner, (*path, name))
            references += more
    return rest, tuple(references)


def _parse_reference(reference: Any, where: str, path: tuple[str, ...]) -> SecretReference:
    given = dict(reference) if isinstance(reference, Mapping) else {}
    if not {"name", "key"} <= given.keys() <= _FIELDS or not all(isinstance(each, str) for each in given.values()):
        raise StepError(
            where, "expected {secretRef: {name: …, key: …}} with texts and an optional namespace, found other fields"
        )
    compiled = {name: compile_expression(text, where=f"{where}.{_MARK}.{name}") for name, text in given.items()}
    return SecretReference(path, where, compiled["name"], compiled["key"], compiled.get("namespace"))
