"""The spec of a NetworkPolicy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json, ensure_list

__all__ = ["NetworkPolicySpecEditor"]


class NetworkPolicySpecEditor(Editor):
    """Edits a NetworkPolicy's ``spec``. A rule has no key, so rules are appended, or removed all together."""

    __slots__ = ()

    def set_pod_selector(self, selector: Mapping[str, Any]) -> None:
        """Replace which pods it is for; an empty selector is all of the namespace."""
        self._fields["podSelector"] = copy_json(selector)

    def append_ingress_rule(self, rule: Mapping[str, Any]) -> None:
        """Allow incoming traffic: ``{"from": [...], "ports": [...]}``; an empty rule allows all."""
        ensure_list(self._fields, "ingress").append(copy_json(rule))

    def append_egress_rule(self, rule: Mapping[str, Any]) -> None:
        """Allow outgoing traffic: ``{"to": [...], "ports": [...]}``; an empty rule allows all."""
        ensure_list(self._fields, "egress").append(copy_json(rule))

    def remove_ingress_rules(self) -> None:
        """Remove all ingress rules: no incoming traffic, where ``policyTypes`` has Ingress."""
        self._fields.pop("ingress", None)

    def remove_egress_rules(self) -> None:
        """Remove all egress rules: no outgoing traffic, where ``policyTypes`` has Egress."""
        self._fields.pop("egress", None)

    def set_policy_types(self, types: Iterable[str]) -> None:
        """Replace what is restricted: ``Ingress``, ``Egress``; by default the first, and the second if it has rules."""
        self._fields["policyTypes"] = list(types)
