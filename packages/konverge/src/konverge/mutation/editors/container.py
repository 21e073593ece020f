"""One container of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import (
    copy_json,
    ensure_list,
    ensure_mapping,
    match_names,
    read_name,
    remove_items,
    set_item,
)

__all__ = ["ContainerEditor"]


class ContainerEditor(Editor):
    """Edits one container or init container."""

    __slots__ = ()

    def ensure_env_var(self, variable: Mapping[str, Any]) -> None:
        """Replace the environment variable of that name, else append it: ``{"name": "MODE", "value": "fast"}``."""
        set_item(self._fields, "env", variable, match_names(read_name(variable)))

    def ensure_env_vars(self, variables: Iterable[Mapping[str, Any]]) -> None:
        """`ensure_env_var` for each, in order."""
        for variable in variables:
            self.ensure_env_var(variable)

    def remove_env_var(self, name: str) -> None:
        """Remove every environment variable of that name."""
        remove_items(self._fields, "env", match_names(name))

    def remove_env_vars(self, names: Iterable[str]) -> None:
        """Remove every environment variable of these names."""
        remove_items(self._fields, "env", match_names(*names))

    def ensure_arg(self, argument: str) -> None:
        """Append the argument unless exactly this string is there."""
        arguments = ensure_list(self._fields, "args")
        if argument not in arguments:
            arguments.append(argument)

    def ensure_args(self, arguments: Iterable[str]) -> None:
        """`ensure_arg` for each, in order."""
        for argument in arguments:
            self.ensure_arg(argument)

    def remove_arg(self, argument: str) -> None:
        """Remove every argument that is exactly this string."""
        self.remove_args((argument,))

    def remove_args(self, arguments: Iterable[str]) -> None:
        """Remove every argument that is exactly one of these strings."""
        unwanted = tuple(arguments)
        remove_items(self._fields, "args", lambda found: found in unwanted)

    def set_resource_limit(self, resource: str, quantity: str) -> None:
        """Set one limit, for example ``memory`` to ``256Mi``."""
        ensure_mapping(self._fields, "resources", "limits")[resource] = quantity

    def set_resource_request(self, resource: str, quantity: str) -> None:
        """Set one request, for example ``cpu`` to ``100m``."""
        ensure_mapping(self._fields, "resources", "requests")[resource] = quantity

    def set_resources(self, resources: Mapping[str, Any]) -> None:
        """Replace requests, limits and claims together."""
        self._fields["resources"] = copy_json(resources)
