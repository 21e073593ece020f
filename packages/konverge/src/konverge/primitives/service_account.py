"""ServiceAccount: static."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import EditCategory, Mutator
from konverge.mutation.field_editing import match_names, remove_items, set_item
from konverge.primitives.kind_categories import StaticKind

__all__ = ["ServiceAccount", "ServiceAccountMutator"]


class ServiceAccount(StaticKind["ServiceAccountMutator"]):
    """A core ``v1`` ServiceAccount: ready once applied, left alone by suspension."""

    gvk = GroupVersionKind("", "v1", "ServiceAccount")

    def create_mutator(self) -> ServiceAccountMutator:
        """What the callbacks of this kind's mutations get."""
        return ServiceAccountMutator()


class ServiceAccountMutator(Mutator):
    """Records edits of a ServiceAccount."""

    def ensure_image_pull_secret(self, name: str) -> None:
        """Let its pods pull images with this Secret, too."""
        self._record(
            EditCategory.CONTENT, lambda obj: set_item(obj, "imagePullSecrets", {"name": name}, match_names(name))
        )

    def remove_image_pull_secret(self, name: str) -> None:
        """No longer let its pods pull images with this Secret."""
        self._record(EditCategory.CONTENT, lambda obj: remove_items(obj, "imagePullSecrets", match_names(name)))

    def set_automount_service_account_token(self, mounted: bool) -> None:
        """Mount its token into its pods, or do not; a pod's own setting wins."""

        def change(obj: Object) -> None:
            obj["automountServiceAccountToken"] = mounted

        self._record(EditCategory.CONTENT, change)
