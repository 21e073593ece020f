"""What a call proves itself with, and whose Secrets it may take for that.

Whoever writes a custom resource must not come by a credential that is not theirs. So there are two kinds:

* A Secret in the namespace of the custom resource. Its name, its key and where it is sent may come from expressions:
  what is in a namespace is for those who may write into it.
* A Secret of another namespace, and an environment variable of the operator: these belong to whoever wrote the file,
  who has to write out all of it. Namespace, name, key, header and the host that gets it have no expressions.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from konverge.errors import ConfigurationError, KonvergeError, NotFoundError, format_error
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_box.calls.call_errors import CallAttemptError
from konverge_box.expressions import Template, compile_expression, is_expression, reveal_sensitive
from konverge_box.file import CallAuthentication
from konverge_box.steps import ObjectReader, Scope

__all__ = ["CallCredential"]

_SECRET = GroupVersionKind("", "v1", "Secret")
_MAX_LENGTH = 64 * 1024


class CallCredential:
    """``auth`` of a call, compiled.

    Args:
        declared: As the file has it.
        where: Its path in the file.
        has_fixed_host: Whether the host that gets it is written out in the file.

    Raises:
        ConfigurationError: It is none, or would give away what does not belong to the custom resource.
    """

    def __init__(self, declared: CallAuthentication, where: str, *, has_fixed_host: bool) -> None:
        reference = declared.secret_ref
        if (reference is None) == (not declared.env):
            raise ConfigurationError(f"{where}: expected either secretRef or env")
        self.where = where
        self.header = declared.header
        self._environment_name = declared.env or ""
        self._parts: tuple[Template, ...] = ()
        if reference is not None:
            texts = {"namespace": reference.namespace, "name": reference.name, "key": reference.key}
            self._parts = tuple(
                compile_expression(text, where=f"{where}.secretRef.{field}") for field, text in texts.items()
            )
        self._is_named = reference is not None and bool(reference.namespace) and not is_expression(reference.namespace)
        if reference is not None and self._is_named and is_expression(reference.name + reference.key):
            raise ConfigurationError(
                f"{where}.secretRef: a Secret of another namespace must be written out; found an expression in its "
                "name or key, by which a custom resource could choose among all Secrets there"
            )
        if (reference is None or self._is_named) and not has_fixed_host:
            what = "env" if reference is None else "a Secret of another namespace"
            raise ConfigurationError(
                f"{where}: {what} is sent only to a host that is written out; found an expression in the host of "
                "url, by which a custom resource could have it sent to itself"
            )

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """The paths that its expressions may read."""
        return frozenset[tuple[str, ...]]().union(*(part.list_read_paths() for part in self._parts))

    async def read_value(
        self, scope: Scope, reader: ObjectReader, own_namespace: str, environment: Mapping[str, str]
    ) -> str:
        """The token or password. A change of its Secret wakes whoever read it.

        Raises:
            CallAttemptError: There is none, or it may not be read.
            konverge_box.expressions.ExpressionError: One of its expressions has no value.
        """
        if not self._parts:
            value = environment.get(self._environment_name, "")
            if not value:
                raise CallAttemptError(f"auth.env: expected a value in {self._environment_name}, found none")
            return _check_value(value, f"the environment variable {self._environment_name}")
        namespace, name, key = (self._render_text(scope, part) for part in self._parts)
        namespace = namespace or own_namespace
        if not namespace:
            raise CallAttemptError("auth.secretRef: a custom resource of the cluster has no namespace; name one")
        if not self._is_named and namespace != own_namespace:
            raise CallAttemptError(
                f"auth.secretRef.namespace: expected {own_namespace or 'none'}, the custom resource's own, found "
                f"{namespace} by an expression; another one must be written out"
            )
        shown = f"Secret {namespace}/{name}"
        try:
            secret = await reader.get(_SECRET, ObjectKey(namespace, name))
        except NotFoundError:
            raise CallAttemptError(f"auth.secretRef: waiting for {shown}, which does not exist") from None
        except KonvergeError as error:
            raise CallAttemptError(f"auth.secretRef: {shown} cannot be read: {format_error(error)}") from error
        return _check_value(_decode_secret(secret.get("data"), key, shown), f"{shown}, {key}")

    def _render_text(self, scope: Scope, part: Template) -> str:
        value = reveal_sensitive(scope.render(part))
        if not isinstance(value, str):
            raise CallAttemptError(f"{part.where}: expected text, found something else")
        return value


def _decode_secret(data: Any, key: str, shown: str) -> str:
    found = reveal_sensitive(data.get(key)) if isinstance(data, Mapping) else None
    if not isinstance(found, str):
        raise CallAttemptError(f"auth.secretRef: expected the key {key} in {shown}, found none")
    try:
        return base64.b64decode(found, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CallAttemptError(f"auth.secretRef: expected text in {shown}, {key}; found other bytes") from None


def _check_value(value: str, shown: str) -> str:
    # Files and `kubectl create secret --from-file` leave a line break at the end, which no token has.
    value = value.rstrip("\r\n")
    if not value or len(value) > _MAX_LENGTH or any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise CallAttemptError(f"expected one line of text in {shown}, found none, several, or control characters")
    return value
