"""The manifests that run resolvers in a cluster: definitions, roles, ConfigMaps that document themselves, Deployment.

The roles are those of the resolvers that are there, and no others; the right to read Secrets is given in the namespaces
that are named for it. What a ConfigMap can say stands in it as an example,
under a key that does not count, with the defaults: whoever edits it adds keys beside that. Pure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from konverge.crd import crd_manifest
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.name_validation import validate_dns_label
from konverge.operator.deployment_manifests import DEPLOYED_FEATURES, DeployedOperator, build_deployment_manifests
from konverge.operator.permission_derivation import derive_permissions
from konverge.operator.role_manifests import build_role_manifests
from konverge_resolution.cluster_services import EVERY_NAMESPACE
from konverge_resolution.requests.admission_policies import build_admission_manifests
from konverge_resolution.requests.resolution_config import GENERAL, GENERAL_SETTINGS, build_config_name
from konverge_resolution.requests.resolution_operator import build_resolution_operator
from konverge_resolution.resolver import Resolver, Setting, list_credential_kinds

__all__ = ["EXAMPLE", "ResolverPackaging", "build_credential_roles", "package_resolvers"]

EXAMPLE = "_example"
"""The key under which a ConfigMap documents itself; keys that begin so do not count."""

_RBAC = "rbac.authorization.k8s.io"
_WIDTH = 96
_ROOT, _TOKENS = "/trusted-root", "/tokens"


@dataclass(frozen=True, slots=True)
class ResolverPackaging:
    """What is to be chosen.

    Args:
        image: The image, whose entry point is ``konverge``.
        name: What the operator is called.
        home: Where it lives, with its configuration.
        replicas: How many there are, of which one works.
        watched: The namespaces of requests; none for all.
        is_namespace_made: Whether the namespace is among the manifests.
        keeps_lifecycle: Whether this operator keeps the lifecycle of all requests, and brings what is there once.
        serves_tekton: Whether it fulfils Tekton's requests too.
        reads_kinds: What the resolver ``cluster`` may read.
        has_admission: Whether the server refuses requests that cannot be fulfilled; where the lifecycle is kept.
        credentials_in: The namespaces whose requests may name Secrets; `EVERY_NAMESPACE` for those of all requests.
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
    """The manifests, in the order in which they can be applied.

    Args:
        resolvers: Those that are run, and no others.
        options: What was chosen.

    Raises:
        konverge.errors.KonvergeError: A name is none.
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
    found: list[Object] = []
    if options.is_namespace_made:
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.home}})
    settings = {build_config_name(each.name): each.settings for each in resolvers}
    if options.keeps_lifecycle:
        found += [crd_manifest(resource) for resource in operator.defined_resources]
        settings = {GENERAL: GENERAL_SETTINGS, **settings}
    found += deployed.add_labels(
        build_role_manifests(permissions, ObjectKey(options.home, options.name), options.watched)
    )
    found += deployed.add_labels(build_credential_roles(resolvers, options))
    for name, declared in settings.items():
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**deployed.metadata, "name": name}}
        found.append({**config_map, "data": {EXAMPLE: format_example(declared)}})
    if options.has_admission and options.keeps_lifecycle:
        judged = build_admission_manifests(
            options.name, options.home, options.watched, serves_tekton=options.serves_tekton
        )
        found += deployed.add_labels(judged)
    return found + build_deployment_manifests(deployed)


def build_credential_roles(resolvers: Sequence[Resolver], options: ResolverPackaging) -> list[Object]:
    """The roles, and their bindings, that let credentials of single namespaces be read; by name, and none is listed.

    Args:
        resolvers: Those that are run.
        options: What was chosen.

    Raises:
        konverge.errors.ConfigurationError: A namespace is none.
    """
    resources = list(list_credential_kinds(resolvers))
    if EVERY_NAMESPACE in options.credentials_in or not resources:
        return []
    found: list[Object] = []
    for namespace in sorted(set(options.credentials_in)):
        if mistakes := validate_dns_label(namespace):
            raise ConfigurationError(f"namespace {namespace[:80]!r} of credentials: {mistakes[0]}")
        metadata = {"name": f"{options.name}-credentials", "namespace": namespace}
        rules = [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}]
        found += [
            {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": dict(metadata),
                "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": metadata["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": options.name, "namespace": options.home}],
            },
        ]
    return found


def _build_deployment(names: Sequence[str], options: ResolverPackaging) -> DeployedOperator:
    command = ["resolvers", "run", f"--only={','.join(names)}", f"--name={options.name}", f"--home={options.home}"]
    command += [] if options.keeps_lifecycle else ["--no-lifecycle"]
    command += ["--tekton"] if options.serves_tekton else []
    command += [f"--credentials={namespace}" for namespace in sorted(set(options.credentials_in))]
    command.append(f"--trusted-root={_ROOT}/trusted_root.json")
    # Neither has to be there: who wants keyless signatures, or a token for a server's API, makes it.
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
        temporary_folder="4Gi" if "git" in names else "64Mi",  # of repositories, what is being fetched
        memory="2Gi" if "git" in names else "512Mi",  # git's processes are the Pod's, too
        volumes=volumes,
        mounts=mounts,
    )


def format_example(settings: Mapping[str, Setting]) -> str:
    """Settings with their defaults, as a ConfigMap documents them."""
    lines = ["# What can be set, with the defaults. Add keys beside this one; nothing of this one counts.", ""]
    for key, setting in settings.items():
        described = f"{setting.description} ({setting.type})"
        lines += (f"# {line}" for line in textwrap.wrap(described, _WIDTH))
        lines += [f'{key}: "{setting.default}"', ""]
    return "\n".join(lines[:-1]) + "\n"
