"""Editor of the subjects of a RoleBinding or ClusterRoleBinding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge._internal.mutation.editors.editor import ListEditor
from konverge._internal.mutation.field_editing import read_name, remove_items, set_item

__all__ = ["BindingSubjectsEditor"]


class BindingSubjectsEditor(ListEditor):
    """Edits the ``subjects`` of a binding. It does not edit the role, which is immutable in the API."""

    __slots__ = ()

    field = "subjects"

    def ensure_subject(self, subject: Mapping[str, Any]) -> None:
        """Replace the subject of the same kind, name and namespace, else append it.

        For example ``{"kind": "User", "name": "ada"}``.

        Raises:
            ValueError: The subject has no name.
        """
        is_same = _match_subject(subject.get("kind"), read_name(subject), subject.get("namespace"))
        set_item(self._parent, self.field, subject, is_same)

    def remove_subject(self, kind: str, name: str, namespace: str = "") -> None:
        """Remove the subjects of this kind, name and namespace; users and groups have no namespace."""
        remove_items(self._parent, self.field, _match_subject(kind, name, namespace))

    def ensure_service_account(self, name: str, namespace: str) -> None:
        """Add this service account to the subjects."""
        self.ensure_subject({"kind": "ServiceAccount", "name": name, "namespace": namespace})

    def remove_service_account(self, name: str, namespace: str) -> None:
        """Remove this service account from the subjects."""
        self.remove_subject("ServiceAccount", name, namespace)


def _match_subject(kind: Any, name: str, namespace: Any) -> Callable[[Any], bool]:
    identity = (kind, name, namespace or "")
    return lambda subject: (
        isinstance(subject, Mapping)
        and (subject.get("kind"), subject.get("name"), subject.get("namespace") or "") == identity
    )
