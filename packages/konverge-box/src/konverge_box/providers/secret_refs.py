"""Values of Secrets in what the file declares: ``{secretRef: {name: …, key: …}}`` in the place of a value.

The file alone says where a reference stands. What an expression answers is never taken for one: an author of a custom
resource could read any Secret otherwise.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_box.expressions import Sensitive, Template, compile_expression
from konverge_box.expressions.values import describe_value_type
from konverge_box.steps import ObjectReader, Scope, StepError

__all__ = ["MissingSecretError", "SecretReference", "extract_secret_references", "read_secret"]

_SECRET = GroupVersionKind("", "v1", "Secret")
_MARK = "secretRef"
_FIELDS = frozenset({"name", "key", "namespace"})


class MissingSecretError(StepError):
    """A Secret, or a key of one, is not there yet. It is being watched: there is nothing to try again."""


@dataclass(frozen=True, slots=True)
class SecretReference:
    """A reference: where its value goes, and the Secret, whose name and namespace may be expressions.

    Args:
        path: The keys that lead there.
        where: Its path in the file.
        name: The Secret.
        key: The key in it.
        namespace: Its namespace; None for the owner's.
    """

    path: tuple[str, ...]
    where: str
    name: Template
    key: Template
    namespace: Template | None

    async def resolve_into(self, into: dict[str, Any], scope: Scope, namespace: str, reader: ObjectReader) -> None:
        """Put the value where it belongs.

        Args:
            into: What was declared, without the references.
            scope: What expressions know.
            namespace: The owner's.
            reader: Reads the Secret, so that a change of it wakes the owner.

        Raises:
            MissingSecretError: It is not there.
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
    """The value of a key, as text.

    Raises:
        MissingSecretError: There is no such Secret, or no such key in it.
        StepError: It is no text.
    """
    if not secret.namespace:
        raise StepError(
            where, f"Secret {secret.name}: a custom resource without a namespace has to name that of a Secret"
        )
    try:
        found = await reader.get(_SECRET, secret)
    except NotFoundError:
        raise MissingSecretError(where, f"waiting for Secret {secret}") from None
    encoded = (found.get("data") or {}).get(key)
    if encoded is None:
        raise MissingSecretError(where, f"waiting for key {key} in Secret {secret}")
    try:
        return Sensitive(base64.b64decode(encoded).decode())
    except ValueError:
        raise StepError(where, f"Secret {secret}, key {key}: expected text in UTF-8, found other bytes") from None


def extract_secret_references(
    declared: Mapping[str, Any], where: str, path: tuple[str, ...] = ()
) -> tuple[dict[str, Any], tuple[SecretReference, ...]]:
    """What is declared without its references, and these.

    Raises:
        StepError: One of them is not written as it has to be.
    """
    rest: dict[str, Any] = {}
    found: list[SecretReference] = []
    for name, value in declared.items():
        inner = f"{where}.{name}"
        if not isinstance(value, Mapping):
            rest[name] = value
        elif value.keys() == {_MARK}:
            found.append(_parse_reference(value[_MARK], inner, (*path, name)))
        else:
            rest[name], more = extract_secret_references(value, inner, (*path, name))
            found += more
    return rest, tuple(found)


def _parse_reference(reference: Any, where: str, path: tuple[str, ...]) -> SecretReference:
    given = dict(reference) if isinstance(reference, Mapping) else {}
    if not {"name", "key"} <= given.keys() <= _FIELDS or not all(isinstance(each, str) for each in given.values()):
        raise StepError(where, "expected {secretRef: {name: …, key: …}}, and perhaps a namespace, all of them texts")
    made = {name: compile_expression(text, where=f"{where}.{_MARK}.{name}") for name, text in given.items()}
    return SecretReference(path, where, made["name"], made["key"], made.get("namespace"))
