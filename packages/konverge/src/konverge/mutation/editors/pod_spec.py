"""What the containers of a pod share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import (
    copy_json,
    ensure_mapping,
    match_names,
    read_name,
    remove_items,
    remove_key,
    set_item,
)

__all__ = ["PodSpecEditor"]


class PodSpecEditor(Editor):
    """Edits a pod's spec, or the one in a pod template. Containers have their own edits in the mutator."""

    __slots__ = ()

    def set_service_account_name(self, name: str) -> None:
        """Run as this service account."""
        self._fields["serviceAccountName"] = name

    def ensure_volume(self, volume: Mapping[str, Any]) -> None:
        """Replace the volume of that name, else append it."""
        set_item(self._fields, "volumes", volume, match_names(read_name(volume)))

    def remove_volume(self, name: str) -> None:
        """Remove the volume of that name."""
        remove_items(self._fields, "volumes", match_names(name))

    def ensure_toleration(self, toleration: Mapping[str, Any]) -> None:
        """Append the toleration unless an equal one is there."""
        set_item(self._fields, "tolerations", toleration, lambda found: bool(found == toleration))

    def remove_tolerations(self, is_unwanted: Callable[[Mapping[str, Any]], bool]) -> None:
        """Remove every toleration for which the function says so."""
        remove_items(self._fields, "tolerations", is_unwanted)

    def ensure_node_selector(self, key: str, value: str) -> None:
        """Require a node label."""
        ensure_mapping(self._fields, "nodeSelector")[key] = value

    def remove_node_selector(self, key: str) -> None:
        """No longer require a node label."""
        remove_key(self._fields, "nodeSelector", key)

    def ensure_image_pull_secret(self, name: str) -> None:
        """Pull images with this Secret, too."""
        set_item(self._fields, "imagePullSecrets", {"name": name}, match_names(name))

    def remove_image_pull_secret(self, name: str) -> None:
        """No longer pull images with this Secret."""
        remove_items(self._fields, "imagePullSecrets", match_names(name))

    def set_priority_class_name(self, name: str) -> None:
        """Set the priority class."""
        self._fields["priorityClassName"] = name

    def set_host_network(self, enabled: bool) -> None:
        """Use the node's network."""
        self._fields["hostNetwork"] = enabled

    def set_host_pid(self, enabled: bool) -> None:
        """Use the node's process namespace."""
        self._fields["hostPID"] = enabled

    def set_host_ipc(self, enabled: bool) -> None:
        """Use the node's IPC namespace."""
        self._fields["hostIPC"] = enabled

    def set_security_context(self, context: Mapping[str, Any]) -> None:
        """Replace the pod's security context."""
        self._fields["securityContext"] = copy_json(context)
