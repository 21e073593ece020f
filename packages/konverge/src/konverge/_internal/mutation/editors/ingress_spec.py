"""Editor of the spec of an Ingress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import remove_items, set_item

if TYPE_CHECKING:
    from konverge.types import networking_v1

__all__ = ["IngressSpecEditor", "IngressSpecFields"]


class IngressSpecFields(TypedDict, total=False):
    """Fields of a ``networking.k8s.io/v1`` IngressSpec."""

    defaultBackend: networking_v1.IngressBackend | None
    ingressClassName: str | None
    rules: list[networking_v1.IngressRule] | None
    tls: list[networking_v1.IngressTLS] | None


class IngressSpecEditor(Editor):
    """Edits the ``spec`` of an Ingress."""

    __slots__ = ()

    def set(self, **fields: Unpack[IngressSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, IngressSpecFields.__optional_keys__)

    def ensure_rule(self, rule: Mapping[str, Any]) -> None:
        """Replace the rule of the same host, else append it; a rule without a host applies to all hosts."""
        set_item(self._fields, "rules", rule, _match_host(_read_host(rule)))

    def remove_rule(self, host: str) -> None:
        """Remove the rules of this host; an empty host selects the rule for all hosts."""
        remove_items(self._fields, "rules", _match_host(host))

    def ensure_tls(self, tls: Mapping[str, Any]) -> None:
        """Replace the entry with the same first host, else append it: ``{"hosts": [...], "secretName": ...}``."""
        set_item(self._fields, "tls", tls, _match_first_host(_read_first_host(tls)))

    def remove_tls(self, host: str) -> None:
        """Remove the entries with this first host; an empty host selects the entries without hosts."""
        remove_items(self._fields, "tls", _match_first_host(host))


def _read_host(rule: Mapping[str, Any]) -> Any:
    return rule.get("host") or ""


def _match_host(host: Any) -> Callable[[Any], bool]:
    return lambda rule: isinstance(rule, Mapping) and _read_host(rule) == host


def _read_first_host(tls: Mapping[str, Any]) -> Any:
    hosts = tls.get("hosts")
    return hosts[0] if isinstance(hosts, list | tuple) and hosts else ""


def _match_first_host(host: Any) -> Callable[[Any], bool]:
    return lambda tls: isinstance(tls, Mapping) and _read_first_host(tls) == host
