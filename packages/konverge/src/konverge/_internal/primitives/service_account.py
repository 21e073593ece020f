"""ServiceAccount: a static primitive without health."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, Mutator
from konverge._internal.mutation.field_editing import match_names, remove_items, set_item
from konverge._internal.primitives.kind_categories import StaticKind

__all__ = ["ServiceAccount", "ServiceAccountMutator"]


class ServiceAccount(StaticKind["ServiceAccountMutator"]):
    """A core ``v1`` ServiceAccount: ready once applied, left alone by suspension."""

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "ServiceAccount")

    def create_mutator(self) -> ServiceAccountMutator:
        """Return a new mutator for the callback of one mutation."""
        return ServiceAccountMutator()


class ServiceAccountMutator(Mutator):
    """Records edits of a ServiceAccount."""

    def ensure_image_pull_secret(self, name: str) -> None:
        """Add this Secret to those with which its pods pull images."""
        self._record(
            EditCategory.CONTENT, lambda obj: set_item(obj, "imagePullSecrets", {"name": name}, match_names(name))
        )

    def remove_image_pull_secret(self, name: str) -> None:
        """Remove this Secret from those with which its pods pull images."""
        self._record(EditCategory.CONTENT, lambda obj: remove_items(obj, "imagePullSecrets", match_names(name)))

    def set_automount_service_account_token(self, mounted: bool) -> None:
        """Set whether its token is mounted into its pods; the setting of a pod takes precedence."""

        def change(obj: Object) -> None:
            obj["automountServiceAccountToken"] = mounted

        self._record(EditCategory.CONTENT, change)
