"""The options of a write: its user, its field manager, and dry run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.access.authorization import Authorizer
from konverge_cluster._internal.embedded.access.users import ADMIN, User
from konverge_cluster._internal.embedded.object_decoding import IGNORED, FieldValidation

__all__ = ["WriteOptions"]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write.

    Attributes:
        manager: The field manager.
        dry_run: True if the result is not stored.
        fields: The handling of unknown fields.
        user: The user who sends the request.
        options: The other options of the request, by their API names (for example ``fieldValidation``).
        warnings: Receives the warnings of webhooks.
        authorizer: Knows the permissions of the user, which roles and bindings must not exceed; None for no check.
        names_object: True if the request names the object; False for a collection.
    """

    manager: str = ""
    dry_run: bool = False
    fields: FieldValidation = IGNORED
    user: User = ADMIN
    options: Mapping[str, object] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    authorizer: Authorizer | None = None
    names_object: bool = True

    def to_options_object(self, kind: str) -> Object:
        """Return the options as webhooks receive them.

        Args:
            kind: ``CreateOptions`` or another.
        """
        options_object: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options_object["dryRun"] = ["All"]
        return options_object | dict(self.options)
