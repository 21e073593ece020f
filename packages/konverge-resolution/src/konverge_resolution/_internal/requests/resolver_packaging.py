"""Manifests that run resolvers in a cluster: CRDs, roles, ConfigMaps that document themselves, Deployment.

The roles contain only the permissions of the packaged resolvers. The right to read Secrets is limited to the given
namespaces. Each ConfigMap documents its settings with their defaults under a key that is ignored; users add their keys
beside it. Pure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from konverge._internal.crd import crd_manifest
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.name_validation import validate_dns_label
from konverge._internal.operator.deployment_manifests import (
    DEPLOYED_FEATURES,
    DeployedOperator,
    build_deployment_manifests,
)
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge.errors import ConfigurationError
from konverge_resolution._internal.cluster_services import EVERY_NAMESPACE
from konverge_resolution._internal.requests.admission_policies import build_admission_manifests
from konverge_resolution._internal.requests.resolution_config import GENERAL, GENERAL_SETTINGS, build_config_name
from konverge_resolution._internal.requests.resolution_operator import build_resolution_operator
from konverge_resolution._internal.requests.resolver_announcements import build_first_announcement
from konverge_resolution._internal.resolver import Resolver, Setting, list_credential_kinds

__all__ = ["EXAMPLE", "ResolverPackaging", "build_credential_roles", "package_resolvers"]

EXAMPLE = "_example"
"""Key under which a ConfigMap documents itself; keys with this prefix are ignored."""

_RBAC = "rbac.authorization.k8s.io"
_WIDTH = 96
_ROOT, _TOKENS = "/trusted-root", "/tokens"


@dataclass(frozen=True, slots=True)
class ResolverPackaging:
    """Options of the manifests.

    Args:
        image: The image; its entry point is ``konverge``.
        name: The name of the operator.
        home: The namespace of the operator and its configuration.
        replicas: The number of replicas; one is active.
        watched: The namespaces of requests; empty for all.
        is_namespace_made: Whether the manifests include the namespace.
        keeps_lifecycle: Whether this operator keeps the lifecycle of all requests, and installs the shared objects.
        serves_tekton: Whether it fulfils Tekton's requests too.
        reads_kinds: The kinds that the resolver ``cluster`` may read.
        has_admission: Whether the API server refuses invalid requests; only together with the lifecycle.
        credentials_in: The namespaces whose requests may name Secrets; `EVERY_NAMESPACE` for all.
    """

    image: str
    name: str = "konverge-resolution"
    home: str = "konverge-system"
    replicas: int = 2
    watched: tuple[str, ...] = ()
    is_namespace_made: bool = True
    keeps_lifecycle: bool = True
    serves_tekton: bool = False
    reads_kinds: tuple[GroupVersionKind, ...] = ()
    has_admission: bool = False
    credentials_in: tuple[str, ...] = ()


def package_resolvers(resolvers: Sequence[Resolver], options: ResolverPackaging) -> list[Object]:
    """Return the manifests in the order in which they can be applied.

    Args:
        resolvers: The resolvers to run.
        options: The options.

    Raises:
        konverge.errors.KonvergeError: A name is invalid.
    """
    operator = build_resolution_operator(
        resolvers,
        name=options.name,
        home=options.home,
        keeps_lifecycle=options.keeps_lifecycle,
        serves_tekton=options.serves_tekton,
        reads_kinds=options.reads_kinds,
        credentials_in=options.credentials_in,
    )
    permissions = derive_permissions(operator.registered.declaration, DEPLOYED_FEATURES)
    deployed = _build_deployment(sorted(resolver.name for resolver in resolvers), options)
    manifests: list[Object] = []
    if options.is_namespace_made:
        manifests.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.home}})
    settings = {build_config_name(resolver.name): resolver.settings for resolver in resolvers}
    if options.keeps_lifecycle:
        manifests += [crd_manifest(resource) for resource in operator.defined_resources]
        settings = {GENERAL: GENERAL_SETTINGS, **settings}
    manifests += deployed.add_labels(
        build_role_manifests(permissions, ObjectKey(options.home, options.name), options.watched)
    )
    manifests += deployed.add_labels(build_credential_roles(resolvers, options))
    for name, declared in settings.items():
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**deployed.metadata, "name": name}}
        manifests.append({**config_map, "data": {EXAMPLE: format_example(declared)}})
    if options.has_admission and options.keeps_lifecycle:
        admission = build_admission_manifests(
            options.name, options.home, options.watched, serves_tekton=options.serves_tekton
        )
        manifests += deployed.add_labels(admission)
    if not options.keeps_lifecycle:
        # Requests that are applied with these manifests wait for the process, instead of being refused.
        announcement = build_first_announcement(options.name, options.home, (resolver.name for resolver in resolvers))
        manifests.append(announcement)
    return manifests + build_deployment_manifests(deployed)


def build_credential_roles(resolvers: Sequence[Resolver], options: ResolverPackaging) -> list[Object]:
    """Return the roles and bindings that permit reading credentials of single namespaces by name, without listing them.

    Args:
        resolvers: The resolvers to run.
        options: The options.

    Raises:
        konverge.errors.ConfigurationError: A namespace is invalid.
    """
    resources = list(list_credential_kinds(resolvers))
    if EVERY_NAMESPACE in options.credentials_in or not resources:
        return []
    manifests: list[Object] = []
    for namespace in sorted(set(options.credentials_in)):
        if mistakes := validate_dns_label(namespace):
            raise ConfigurationError(f"namespace {namespace[:80]!r} of credentials: {mistakes[0]}")
        metadata = {"name": f"{options.name}-credentials", "namespace": namespace}
        rules = [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}]
        manifests += [
            {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": dict(metadata),
                "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": metadata["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": options.name, "namespace": options.home}],
            },
        ]
    return manifests


def _build_deployment(names: Sequence[str], options: ResolverPackaging) -> DeployedOperator:
    command = ["resolvers", "run", f"--only={','.join(names)}", f"--name={options.name}", f"--home={options.home}"]
    command += [] if options.keeps_lifecycle else ["--no-lifecycle"]
    command += ["--tekton"] if options.serves_tekton else []
    command += [f"--credentials={namespace}" for namespace in sorted(set(options.credentials_in))]
    command.append(f"--trusted-root={_ROOT}/trusted_root.json")
    # Both are optional: keyless signatures need the ConfigMap, and a token for a server's API needs the Secret.
    volumes: dict[str, Object] = {"trusted-root": {"configMap": {"name": f"{GENERAL}-trusted-root", "optional": True}}}
    mounts = {"trusted-root": _ROOT}
    if "git" in names:
        volumes["tokens"] = {"secret": {"secretName": f"{build_config_name('git')}-tokens", "optional": True}}
        mounts["tokens"] = _TOKENS
    return DeployedOperator(
        name=options.name,
        namespace=options.home,
        kind="konverge-resolvers",
        generator="konverge-resolvers-package",
        image=options.image,
        command=command,
        replicas=options.replicas,
        watched_namespaces=options.watched,
        temporary_folder="4Gi" if "git" in names else "64Mi",  # for repositories during a fetch
        memory="2Gi" if "git" in names else "512Mi",  # includes the git processes
        volumes=volumes,
        mounts=mounts,
    )


def format_example(settings: Mapping[str, Setting]) -> str:
    """Format settings with their defaults as the documentation in a ConfigMap."""
    lines = ["# All settings with their defaults. Add keys beside this one; its content is ignored.", ""]
    for key, setting in settings.items():
        described = f"{setting.description} ({setting.type})"
        lines += (f"# {line}" for line in textwrap.wrap(described, _WIDTH))
        lines += [f'{key}: "{setting.default}"', ""]
    return "\n".join(lines[:-1]) + "\n"
