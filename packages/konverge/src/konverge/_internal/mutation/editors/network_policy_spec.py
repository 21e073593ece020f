"""Editor of the spec of a NetworkPolicy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import copy_json, ensure_list

if TYPE_CHECKING:
    from konverge.types import meta_v1, networking_v1

__all__ = ["NetworkPolicySpecEditor", "NetworkPolicySpecFields"]


class NetworkPolicySpecFields(TypedDict, total=False):
    """Fields of a ``networking.k8s.io/v1`` NetworkPolicySpec."""

    egress: list[networking_v1.NetworkPolicyEgressRule] | None
    ingress: list[networking_v1.NetworkPolicyIngressRule] | None
    podSelector: meta_v1.LabelSelector | None
    policyTypes: list[Literal["Egress", "Ingress"]] | None


class NetworkPolicySpecEditor(Editor):
    """Edits a NetworkPolicy's ``spec``. A rule has no key: rules are appended, or removed together."""

    __slots__ = ()

    def set(self, **fields: Unpack[NetworkPolicySpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field.

        An empty ``podSelector`` matches all pods of the namespace. Without ``policyTypes`` the API restricts ingress,
        and egress if there are egress rules.
        """
        self._set_fields(fields, NetworkPolicySpecFields.__optional_keys__)

    def append_ingress_rule(self, rule: Mapping[str, Any]) -> None:
        """Allow incoming traffic: ``{"from": [...], "ports": [...]}``; an empty rule allows all."""
        ensure_list(self._fields, "ingress").append(copy_json(rule))

    def append_egress_rule(self, rule: Mapping[str, Any]) -> None:
        """Allow outgoing traffic: ``{"to": [...], "ports": [...]}``; an empty rule allows all."""
        ensure_list(self._fields, "egress").append(copy_json(rule))

    def remove_ingress_rules(self) -> None:
        """Remove all ingress rules: no incoming traffic, if ``policyTypes`` contains Ingress."""
        self._fields.pop("ingress", None)

    def remove_egress_rules(self) -> None:
        """Remove all egress rules: no outgoing traffic, if ``policyTypes`` contains Egress."""
        self._fields.pop("egress", None)
