"""A compiled entry of a group: its objects in a reconcile, and how each is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from konverge._internal.apply.builtin_schemas import find_builtin_schema
from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.secret_redaction import SECRET_FIELDS
from konverge_box._internal.expressions import (
    OMIT,
    CompiledCondition,
    Sensitive,
    Structure,
    Template,
    compile_expression,
    compile_structure,
    has_sensitive,
    to_sensitive,
)
from konverge_box._internal.expressions.schedules import parse_period
from konverge_box._internal.expressions.values import describe_value_type
from konverge_box._internal.file import BoxResource
from konverge_box._internal.steps.apply_policy import ApplyPolicy, ApplyTiming
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.for_each import MAX_ITEMS, Repetition
from konverge_box._internal.steps.labels import ENTRY, MANAGED_BY, OWNER_UID, compute_short_hash, to_label_value
from konverge_box._internal.steps.scope import Scope
from konverge_box._internal.steps.string_coercion import coerce_to_strings, find_string_fields, remove_nulls
from konverge_box._internal.steps.tls_secret import CompiledCertificate
from konverge_box._internal.steps.wait_conditions import WaitConditions

__all__ = ["LATE_NAMES", "CompiledResource"]

LATE_NAMES = ("children", "providers")
"""The names that only the content of later groups can read."""

# The fields that never change during the life of a custom resource.
_FIXED = frozenset({("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid")})


class CompiledResource:
    """A compiled entry of a group.

    Args:
        declared: The entry in the file.
        step: The path of its step in the file, for example ``spec.crds.website.onReconcile``.
        group: The name of its group; empty for a group without a name.
        box_name: The name of the box, for the label `MANAGED_BY`.

    Attributes:
        declared: The entry in the file.
        path: Its path in the file.
        gvk: Its kind.
        apply_policy: The policy for its objects.
        entry: The label value of its objects. It does not depend on the position of the entry in the file.
        repetition: Its repetition by ``forEach``.
        conditions: The conditions under which its objects should exist.
        wait_for: The conditions under which its objects are applied.
        ready_when: The conditions under which its objects are ready; None for the rule of its kind.
        has_fixed_key: Tells whether it always declares the same object of a custom resource.
        renewal_period: The time after which its values are generated again; None for never.
        certificate: The certificate that it contains instead of data of its own; None without one.
        late_paths: The paths that it reads of ``children`` and ``providers``, which exist only after earlier groups.
    """

    def __init__(self, declared: BoxResource, step: str, group: str, box_name: str) -> None:
        path = declared.path
        self.declared = declared
        self.path = path
        self.gvk = declared.gvk
        self.apply_policy = _build_apply_policy(declared, is_on_create=step.endswith(".onCreate"))
        self.repetition = Repetition(declared.for_each, path)
        self.conditions = compile_entry_conditions(declared, path)
        self.wait_for = WaitConditions(declared.wait_for, f"{path}.waitFor")
        self.ready_when = WaitConditions(declared.ready_when, f"{path}.readyWhen") if declared.ready_when else None
        self.renewal_period = _parse_renewal_period(declared)
        metadata = declared.object["metadata"]
        name, namespace = str(metadata["name"]), str(metadata.get("namespace") or "")
        self._name = compile_expression(name, where=f"{path}.name")
        self._namespace = compile_expression(namespace, where=f"{path}.namespace") if namespace else None
        self._namespaces = _compile_namespaces(declared, path)
        self._source = (
            compile_structure([declared.copy_from.name, declared.copy_from.namespace], where=f"{path}.from")
            if declared.copy_from is not None
            else None
        )
        self.certificate = None if declared.tls is None else CompiledCertificate(declared.tls, f"{path}.tls")
        body = _remove_key(declared.object)
        self._object = compile_structure(body, where=path)
        schema = find_builtin_schema(self.gvk)
        self._places = find_string_fields(body, schema)
        self._may_be_null = schema is None  # null can only be a value in a kind without a known schema
        self.entry = compute_short_hash(step, group, declared.kind, str(self.gvk), name, namespace)
        self._labels = {MANAGED_BY: to_label_value(box_name), ENTRY: self.entry}
        read = self._name.list_read_paths() | (
            self._namespace.list_read_paths() if self._namespace is not None else frozenset()
        )
        parts = (
            self._object,
            self.wait_for,
            *(each for each in (self.ready_when, self.certificate) if each is not None),
        )
        paths = frozenset[tuple[str, ...]]().union(*(part.list_read_paths() for part in parts))
        self.late_paths = frozenset(path for path in paths if path[0] in LATE_NAMES)
        # The namespaces of a list can change with the file, while the entry stays the same.
        self.has_fixed_key = not self.repetition.is_loop and self._namespaces is None and read <= _FIXED

    @property
    def timed_conditions(self) -> tuple[CompiledCondition, ...]:
        """All its conditions, including those that depend on the time."""
        return (*self.conditions.when, *self.conditions.any_of, *self.wait_for.conditions)

    def may_leave_namespace(self, *, is_namespaced: bool) -> bool:
        """Tell whether one of its objects can be outside of the custom resource's namespace.

        Args:
            is_namespaced: Tells whether its kind is namespaced.
        """
        return self._namespace is not None or self._namespaces is not None or not is_namespaced

    def list_keys(self, scope: Scope, own_namespace: str, *, namespaced: bool) -> list[ObjectKey]:
        """Return the keys of its objects for one item: one key, or one for each of ``toNamespaces``.

        Args:
            scope: The scope of the item.
            own_namespace: The namespace of the custom resource; empty for a cluster-scoped one.
            namespaced: Tells whether its kind is namespaced.

        Raises:
            StepError: A name is invalid.
            konverge_box.expressions.ExpressionError: A name has no value.
        """
        name = self._render_text(scope, self._name, "name")
        if not namespaced:
            if self._namespace is not None or self._namespaces is not None:
                raise StepError(
                    f"{self.path}.namespace",
                    f"expected no namespace for the cluster-scoped kind {self.gvk.kind}; remove it",
                )
            return [ObjectKey("", name)]
        if self._namespaces is not None:
            return [ObjectKey(each, name) for each in self._list_target_namespaces(scope, self._namespaces)]
        namespace = own_namespace if self._namespace is None else self._render_text(scope, self._namespace, "namespace")
        if not namespace:
            raise StepError(f"{self.path}.namespace", f"expected the namespace of this {self.gvk.kind}, found none")
        return [ObjectKey(namespace, name)]

    def find_source(self, scope: Scope, own_namespace: str) -> ObjectKey | None:
        """Return the key of the object whose data it copies; None without such an object.

        Raises:
            StepError: The name is invalid.
            konverge_box.expressions.ExpressionError: The name has no value.
        """
        if self._source is None:
            return None
        name, namespace = scope.render(self._source)
        where = f"{self.path}.from"
        return ObjectKey(_to_name(namespace or own_namespace, where), _to_name(name, where))

    def render_object(self, scope: Scope, key: ObjectKey, owner_uid: str) -> Object:
        """Render the object, with the labels of its owner. Values from a Secret, or for a Secret, are sensitive in it.

        Raises:
            StepError: The result is not a valid object.
            konverge_box.expressions.ExpressionError: An expression in it has no value.
        """
        obj: Object = scope.render(self._object)
        coerce_to_strings(obj, self._places)
        if not self._may_be_null:
            obj = remove_nulls(obj)
        metadata = obj.get("metadata", {})
        if has_sensitive(metadata):
            # Every client that may list the objects sees the metadata.
            raise StepError(
                f"{self.path}.metadata", "expected no value from a Secret: labels and annotations are not confidential"
            )
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not isinstance(labels, dict | None):
            raise StepError(f"{self.path}.labels", f"expected a mapping, found {describe_value_type(labels)}")
        metadata["name"] = key.name
        if key.namespace:
            metadata["namespace"] = key.namespace
        metadata["labels"] = {**(labels or {}), **self._labels, OWNER_UID: owner_uid}
        obj |= {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind, "metadata": metadata}
        if self.gvk.is_secret:
            obj |= {field: to_sensitive(obj[field]) for field in SECRET_FIELDS if obj.get(field)}
        return obj

    def _list_target_namespaces(self, scope: Scope, namespaces: Structure | Template) -> list[str]:
        where = f"{self.path}.toNamespaces"
        names = scope.render(namespaces)
        if not isinstance(names, list) or has_sensitive(names):
            actual = "a value from a Secret" if has_sensitive(names) else describe_value_type(names)
            raise StepError(where, f"expected a list of namespaces, found {actual}")
        # An item can be an expression whose value is a list.
        names = [name for item in names for name in (item if isinstance(item, list) else [item])]
        if len(names) > MAX_ITEMS:
            raise StepError(where, f"expected at most {MAX_ITEMS} namespaces, found {len(names)}")
        return list(dict.fromkeys(_to_name(name, where) for name in names))

    def _render_text(self, scope: Scope, template: Template, field: str) -> str:
        return _to_name(scope.render(template), f"{self.path}.{field}")


def _parse_renewal_period(declared: BoxResource) -> timedelta | None:
    """Return the time after which the values of a Secret are generated again; None for never."""
    if declared.rotate_after is not None:
        return parse_period(declared.rotate_after)
    return None if declared.tls is None else parse_period(declared.tls.valid_for) * 2 / 3


def _build_apply_policy(declared: BoxResource, *, is_on_create: bool) -> ApplyPolicy:
    is_kept = not is_on_create or declared.reconcile
    if declared.kind == "jobs":
        return ApplyPolicy(ApplyTiming.RUN, deletes=False)
    if declared.tls is not None or declared.rotate_after is not None:
        return ApplyPolicy(ApplyTiming.RENEWED, deletes=is_kept)
    if declared.once:
        return ApplyPolicy(ApplyTiming.ONCE, deletes=is_kept)
    return ApplyPolicy(ApplyTiming.ALWAYS if is_kept else ApplyTiming.MADE, deletes=is_kept)


def _compile_namespaces(declared: BoxResource, path: str) -> Structure | Template | None:
    given = declared.to_namespaces
    if not given:
        return None
    where = f"{path}.toNamespaces"
    if isinstance(given, str):
        return compile_expression(given, where=where)
    return compile_structure(list(given), where=where)


def _remove_key(obj: Mapping[str, Any]) -> Object:
    body = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata")}
    key_fields = ("name", "namespace")
    body["metadata"] = {name: value for name, value in obj["metadata"].items() if name not in key_fields}
    return body


def _to_name(value: Any, where: str) -> str:
    """Convert a rendered value to a name: text, or an integer in decimal digits.

    Raises:
        StepError: The value is neither, or it is sensitive.
    """
    if isinstance(value, Sensitive):
        raise StepError(where, "expected no value from a Secret: names are not confidential")
    if type(value) is int:
        return str(value)
    if type(value) is not str or not value:
        raise StepError(where, f"expected a name, found {'omit' if value is OMIT else describe_value_type(value)}")
    return value
