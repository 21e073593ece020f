"""The manifests that run a box in a cluster, for `kubectl apply`, without Helm.

The input is a box, its permissions and its CustomResourceDefinitions. The output is the objects in an order in which
they can be applied. Users can edit the text: the same input always produces the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.operator.deployment_manifests import DeployedOperator, build_deployment_manifests
from konverge._internal.operator.permission_derivation import RequiredPermissions
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge.errors import ConfigurationError
from konverge_box._internal.file import OperatorBox

__all__ = ["PackagingOptions", "build_manifests"]

_FILE = "box.yaml"
_FOLDER = "/box"
_MAX_CONFIG_MAP_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class PackagingOptions:
    """The options of the manifests.

    Args:
        image: The image, whose entry point is ``konverge``.
        namespace: The namespace of the operator.
        replicas: The number of replicas; one is active.
        watched: The namespaces of the custom resources; empty for all.
        is_namespace_made: Tells whether the manifests include the namespace.
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
    """Build the manifests, in an order in which they can be applied.

    Args:
        box: The box.
        text: Its file, which the ConfigMap contains unchanged.
        permissions: The required permissions of the operator.
        definitions: The CustomResourceDefinitions of the box.
        chosen: The options.

    Raises:
        ConfigurationError: A name is invalid, or the file does not fit into a ConfigMap.
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
        volumes={
            "box": {"configMap": {"name": name}}
        },  # mount the directory: a single mounted file would not follow changes
        mounts={"box": _FOLDER},
    )
    manifests: list[Object] = []
    granted = build_role_manifests(permissions, ObjectKey(chosen.namespace, name), chosen.watched)
    if chosen.is_namespace_made:
        manifests.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chosen.namespace}})
    manifests += definitions
    manifests += deployed.add_labels(granted)
    manifests.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": deployed.metadata, "data": {_FILE: text}})
    return manifests + build_deployment_manifests(deployed)


def _reads_environment(box: OperatorBox) -> bool:
    """Tell whether a call reads its credential from an environment variable."""
    calls = (call for declared in box.spec.crds.values() for call in declared.external)
    return any(call.auth is not None and call.auth.env is not None for call in calls)
