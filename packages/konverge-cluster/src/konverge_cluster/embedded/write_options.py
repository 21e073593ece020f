"""How a write is meant: who asks, as which manager, for real or only to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from konverge.kube import Object
from konverge_cluster.embedded.access.users import ADMIN, User
from konverge_cluster.embedded.object_decoding import IGNORED, FieldValidation

__all__ = ["WriteOptions"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is meant.

    Attributes:
        manager: The field manager.
        dry_run: Whether it is only tried.
        fields: What becomes of unknown fields.
        user: Who asks.
        options: What the request said beyond that, in the words of the API (``fieldValidation`` for example).
        warnings: Gets what webhooks warn of.
        names_object: Whether the request names the object; that of a collection does not.
    """

    manager: str = ""
    dry_run: bool = False
    fields: FieldValidation = IGNORED
    user: User = ADMIN
    options: Mapping[str, object] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    names_object: bool = True

    def to_options_object(self, kind: str) -> Object:
        """The options as webhooks see them.

        Args:
            kind: ``CreateOptions`` or another.
        """
        told: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            told["dryRun"] = ["All"]
        return told | dict(self.options)
