"""The credential of a call, and the rules about the Secrets that it may read.

The author of a custom resource must not get a credential that belongs to others. So there are two kinds:

* A Secret in the namespace of the custom resource. Its name, its key and its target can come from expressions: the
  content of a namespace belongs to the users who may write to it.
* A Secret of another namespace, or an environment variable of the operator. They belong to the author of the file, who
  must write all parts literally: namespace, name, key, header and target host contain no expressions.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge.errors import ConfigurationError, KonvergeError, NotFoundError, format_error
from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.expressions import Template, compile_expression, is_expression, reveal_sensitive
from konverge_box._internal.expressions.values import describe_value_type
from konverge_box._internal.file import CallAuthentication
from konverge_box._internal.steps import ObjectReader, Scope

__all__ = ["CallCredential"]

_SECRET = GroupVersionKind("", "v1", "Secret")
_MAX_LENGTH = 64 * 1024


class CallCredential:
    """The compiled ``auth`` of a call.

    Args:
        declared: The ``auth`` in the file.
        where: Its path in the file.
        has_fixed_host: Tells whether the file contains the target host literally.

    Raises:
        ConfigurationError: It is invalid, or would disclose a credential that does not belong to the custom resource.
    """

    def __init__(self, declared: CallAuthentication, where: str, *, has_fixed_host: bool) -> None:
        reference = declared.secret_ref
        if (reference is None) == (not declared.env):
            raise ConfigurationError(
                f"{where}: expected either secretRef or env, found {'none' if reference is None else 'both'}"
            )
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
                f"{where}.secretRef: expected a literal name and key for a Secret of another namespace, found an "
                "expression, with which a custom resource could select any Secret there"
            )
        if (reference is None or self._is_named) and not has_fixed_host:
            source = "env" if reference is None else "a Secret of another namespace"
            raise ConfigurationError(
                f"{where}: expected a literal host in url, since {source} is sent to it; found an expression, with "
                "which a custom resource could send the credential to any host"
            )

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that its expressions can read."""
        return frozenset[tuple[str, ...]]().union(*(part.list_read_paths() for part in self._parts))

    async def read_value(
        self, scope: Scope, reader: ObjectReader, own_namespace: str, environment: Mapping[str, str]
    ) -> str:
        """Read the token or password. A change of its Secret queues the custom resource.

        Raises:
            CallAttemptError: The credential does not exist or may not be read.
            konverge_box.expressions.ExpressionError: One of its expressions has no value.
        """
        if not self._parts:
            value = environment.get(self._environment_name, "")
            if not value:
                raise CallAttemptError(
                    f"auth.env: expected a value in the environment variable {self._environment_name}, found none"
                )
            return _check_value(value, f"the environment variable {self._environment_name}")
        namespace, name, key = (self._render_text(scope, part) for part in self._parts)
        namespace = namespace or own_namespace
        if not namespace:
            raise CallAttemptError(
                "auth.secretRef: expected a namespace, found none: the custom resource is cluster-scoped"
            )
        if not self._is_named and namespace != own_namespace:
            raise CallAttemptError(
                f"auth.secretRef.namespace: expected the custom resource's namespace {own_namespace or '(none)'}, "
                f"found {namespace} from an expression; write another namespace literally"
            )
        source = f"Secret {namespace}/{name}"
        try:
            secret = await reader.get(_SECRET, ObjectKey(namespace, name))
        except NotFoundError:
            raise CallAttemptError(f"auth.secretRef: waiting for {source}, which does not exist") from None
        except KonvergeError as error:
            raise CallAttemptError(f"auth.secretRef: {source} cannot be read: {format_error(error)}") from error
        return _check_value(_decode_secret(secret.get("data"), key, source), f"{source}, {key}")

    def _render_text(self, scope: Scope, part: Template) -> str:
        value = reveal_sensitive(scope.render(part))
        if not isinstance(value, str):
            raise CallAttemptError(f"{part.where}: expected text, found {describe_value_type(value)}")
        return value


def _decode_secret(data: Any, key: str, source: str) -> str:
    encoded = reveal_sensitive(data.get(key)) if isinstance(data, Mapping) else None
    if not isinstance(encoded, str):
        raise CallAttemptError(f"auth.secretRef: expected the key {key} in {source}, found none")
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CallAttemptError(f"auth.secretRef: expected text in {source}, {key}; found binary data") from None


def _check_value(value: str, source: str) -> str:
    # Files, and so `kubectl create secret --from-file`, end with a line break that is not part of the token.
    value = value.rstrip("\r\n")
    if not value or len(value) > _MAX_LENGTH or any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise CallAttemptError(
            f"expected one line of text in {source}, found none, several lines, or control characters"
        )
    return value
