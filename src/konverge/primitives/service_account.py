"""ServiceAccount: static."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import Category, Mutator
from konverge.mutation.fields import named, put_item, remove_items
from konverge.primitives.categories import StaticKind

__all__ = ["ServiceAccount", "ServiceAccountMutator"]


class ServiceAccount(StaticKind["ServiceAccountMutator"]):
    """A core ``v1`` ServiceAccount: ready once applied, left alone by suspension."""

    gvk = GroupVersionKind("", "v1", "ServiceAccount")

    def new_mutator(self) -> ServiceAccountMutator:
        """What the callbacks of this kind's mutations get."""
        return ServiceAccountMutator()


class ServiceAccountMutator(Mutator):
    """Records edits of a ServiceAccount."""

    def ensure_image_pull_secret(self, name: str) -> None:
        """Let its pods pull images with this Secret, too."""
        self._record(Category.CONTENT, lambda obj: put_item(obj, "imagePullSecrets", {"name": name}, named(name)))

    def remove_image_pull_secret(self, name: str) -> None:
        """No longer let its pods pull images with this Secret."""
        self._record(Category.CONTENT, lambda obj: remove_items(obj, "imagePullSecrets", named(name)))

    def set_automount_service_account_token(self, mounted: bool) -> None:
        """Mount its token into its pods, or do not; a pod's own setting wins."""

        def change(obj: Object) -> None:
            obj["automountServiceAccountToken"] = mounted

        self._record(Category.CONTENT, change)
