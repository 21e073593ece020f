"""The spec of an Ingress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json, remove_items, set_item

__all__ = ["IngressSpecEditor"]


class IngressSpecEditor(Editor):
    """Edits an Ingress's ``spec``."""

    __slots__ = ()

    def set_ingress_class_name(self, name: str) -> None:
        """Set which controller serves it."""
        self._fields["ingressClassName"] = name

    def set_default_backend(self, backend: Mapping[str, Any]) -> None:
        """Replace where requests go that no rule matches: ``{"service": {"name": "web", "port": {"number": 80}}}``."""
        self._fields["defaultBackend"] = copy_json(backend)

    def ensure_rule(self, rule: Mapping[str, Any]) -> None:
        """Replace the rule of that host, else append it. A rule without a host is the one for all hosts."""
        set_item(self._fields, "rules", rule, _match_host(_read_host(rule)))

    def remove_rule(self, host: str) -> None:
        """Remove the rules of that host; an empty one is the rule for all hosts."""
        remove_items(self._fields, "rules", _match_host(host))

    def ensure_tls(self, tls: Mapping[str, Any]) -> None:
        """Replace the entry with the same first host, else append it: ``{"hosts": [...], "secretName": ...}``."""
        set_item(self._fields, "tls", tls, _match_first_host(_read_first_host(tls)))

    def remove_tls(self, host: str) -> None:
        """Remove the entries whose first host it is; an empty one means those without hosts."""
        remove_items(self._fields, "tls", _match_first_host(host))


def _read_host(rule: Mapping[str, Any]) -> Any:
    return rule.get("host") or ""


def _match_host(host: Any) -> Callable[[Any], bool]:
    return lambda found: isinstance(found, Mapping) and _read_host(found) == host


def _read_first_host(tls: Mapping[str, Any]) -> Any:
    hosts = tls.get("hosts")
    return hosts[0] if isinstance(hosts, list | tuple) and hosts else ""


def _match_first_host(host: Any) -> Callable[[Any], bool]:
    return lambda found: isinstance(found, Mapping) and _read_first_host(found) == host
