"""The manifests that run a box in a cluster: what `kubectl apply` needs, and nothing of Helm.

In goes a box, what it has to be allowed and the definitions that it brings; out come the objects in the order in which
they can be applied. Who wants them otherwise changes the text: they are the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from konverge.errors import ConfigurationError
from konverge.kube import Object, ObjectKey
from konverge.operator.deployment_manifests import DeployedOperator, build_deployment_manifests
from konverge.operator.permission_derivation import RequiredPermissions
from konverge.operator.role_manifests import build_role_manifests
from konverge_box.file import OperatorBox

__all__ = ["PackagingOptions", "build_manifests"]

_FILE = "box.yaml"
_FOLDER = "/box"
_MAX_CONFIG_MAP_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class PackagingOptions:
    """What is to be chosen.

    Args:
        image: The image, whose entry point is ``konverge``.
        namespace: Where the operator lives.
        replicas: How many there are, of which one works.
        watched: The namespaces of the custom resources; none for all.
        is_namespace_made: Whether the namespace is among the manifests.
    """

    image: str
    namespace: str = "konverge-system"
    replicas: int = 2
    watched: tuple[str, ...] = ()
    is_namespace_made: bool = True


def build_manifests(
    box: OperatorBox,
    text: str,
    permissions: RequiredPermissions,
    definitions: Sequence[Object],
    chosen: PackagingOptions,
) -> list[Object]:
    """The manifests, in the order in which they can be applied.

    Args:
        box: The box.
        text: Its file, which the ConfigMap holds as it is.
        permissions: What the operator has to be allowed.
        definitions: The CustomResourceDefinitions that the box brings.
        chosen: What was chosen.

    Raises:
        ConfigurationError: A name is none, or the file does not fit into a ConfigMap.
    """
    if len(text.encode()) + len(_FILE) > _MAX_CONFIG_MAP_SIZE:
        raise ConfigurationError(f"the box does not fit into a ConfigMap, which holds {_MAX_CONFIG_MAP_SIZE >> 20} MiB")
    name = box.metadata.name
    deployed = DeployedOperator(
        name=name,
        namespace=chosen.namespace,
        kind="konverge-box",
        generator="konverge-box-package",
        image=chosen.image,
        command=("box", "run", f"{_FOLDER}/{_FILE}"),
        replicas=chosen.replicas,
        watched_namespaces=chosen.watched,
        environment_from=f"{name}-environment" if _reads_environment(box) else "",
        volumes={"box": {"configMap": {"name": name}}},  # a folder, not one file of it: only folders follow a change
        mounts={"box": _FOLDER},
    )
    found: list[Object] = []
    granted = build_role_manifests(permissions, ObjectKey(chosen.namespace, name), chosen.watched)
    if chosen.is_namespace_made:
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chosen.namespace}})
    found += definitions
    found += deployed.add_labels(granted)
    found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": deployed.metadata, "data": {_FILE: text}})
    return found + build_deployment_manifests(deployed)


def _reads_environment(box: OperatorBox) -> bool:
    """Whether a call proves itself with an environment variable."""
    found = (call for declared in box.spec.crds.values() for call in declared.external)
    return any(call.auth is not None and call.auth.env is not None for call in found)
