"""Editor of one container of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import (
    ensure_list,
    ensure_mapping,
    match_names,
    read_name,
    remove_items,
    set_item,
)

if TYPE_CHECKING:
    from konverge.types import core_v1

__all__ = ["ContainerEditor", "ContainerFields"]


class ContainerFields(TypedDict, total=False):
    """Fields of a ``v1`` Container."""

    args: list[str] | None
    command: list[str] | None
    env: list[core_v1.EnvVar] | None
    envFrom: list[core_v1.EnvFromSource] | None
    image: str | None
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"] | None
    lifecycle: core_v1.Lifecycle | None
    livenessProbe: core_v1.Probe | None
    name: str
    ports: list[core_v1.ContainerPort] | None
    readinessProbe: core_v1.Probe | None
    resizePolicy: list[core_v1.ContainerResizePolicy] | None
    resources: core_v1.ResourceRequirements | None
    restartPolicy: str | None
    restartPolicyRules: list[core_v1.ContainerRestartRule] | None
    securityContext: core_v1.SecurityContext | None
    startupProbe: core_v1.Probe | None
    stdin: bool | None
    stdinOnce: bool | None
    terminationMessagePath: str | None
    terminationMessagePolicy: Literal["FallbackToLogsOnError", "File"] | None
    tty: bool | None
    volumeDevices: list[core_v1.VolumeDevice] | None
    volumeMounts: list[core_v1.VolumeMount] | None
    workingDir: str | None


class ContainerEditor(Editor):
    """Edits one container or init container."""

    __slots__ = ()

    def set(self, **fields: Unpack[ContainerFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, ContainerFields.__optional_keys__)

    def ensure_env_var(self, variable: Mapping[str, Any]) -> None:
        """Replace the environment variable of the same name, else append it: ``{"name": "MODE", "value": "fast"}``."""
        set_item(self._fields, "env", variable, match_names(read_name(variable)))

    def ensure_env_vars(self, variables: Iterable[Mapping[str, Any]]) -> None:
        """Call `ensure_env_var` for each variable, in order."""
        for variable in variables:
            self.ensure_env_var(variable)

    def remove_env_var(self, name: str) -> None:
        """Remove every environment variable of this name."""
        remove_items(self._fields, "env", match_names(name))

    def remove_env_vars(self, names: Iterable[str]) -> None:
        """Remove every environment variable of these names."""
        remove_items(self._fields, "env", match_names(*names))

    def ensure_arg(self, argument: str) -> None:
        """Append the argument unless the list contains exactly this string."""
        arguments = ensure_list(self._fields, "args")
        if argument not in arguments:
            arguments.append(argument)

    def ensure_args(self, arguments: Iterable[str]) -> None:
        """Call `ensure_arg` for each argument, in order."""
        for argument in arguments:
            self.ensure_arg(argument)

    def remove_arg(self, argument: str) -> None:
        """Remove every argument that is exactly this string."""
        self.remove_args((argument,))

    def remove_args(self, arguments: Iterable[str]) -> None:
        """Remove every argument that is exactly one of these strings."""
        unwanted = tuple(arguments)
        remove_items(self._fields, "args", lambda argument: argument in unwanted)

    def set_resource_limit(self, resource: str, quantity: str) -> None:
        """Set one resource limit, for example ``memory`` to ``256Mi``."""
        ensure_mapping(self._fields, "resources", "limits")[resource] = quantity

    def set_resource_request(self, resource: str, quantity: str) -> None:
        """Set one resource request, for example ``cpu`` to ``100m``."""
        ensure_mapping(self._fields, "resources", "requests")[resource] = quantity
