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
from konverge.kube.names import dns_label_mistakes
from konverge.operator.deployment import FACILITIES, Deployed, deployment_manifests
from konverge.operator.permissions import permissions_of
from konverge.operator.roles import manifests
from konverge.resolution.requests.admission import admission_manifests
from konverge.resolution.requests.configuration import GENERAL, GENERAL_SETTINGS, resolver_config_name
from konverge.resolution.requests.operator import resolution_operator
from konverge.resolution.resolver import Resolver, Setting, credential_kinds
from konverge.resolution.services import EVERY_NAMESPACE

__all__ = ["EXAMPLE", "ResolverPackaging", "credential_roles", "package_resolvers"]

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


def package_resolvers(resolvers: Sequence[Resolver], chosen: ResolverPackaging) -> list[Object]:
    """The manifests, in the order in which they can be applied.

    Args:
        resolvers: Those that are run, and no others.
        chosen: What was chosen.

    Raises:
        konverge.errors.KonvergeError: A name is none.
    """
    operator = resolution_operator(
        resolvers,
        name=chosen.name,
        home=chosen.home,
        keeps_lifecycle=chosen.keeps_lifecycle,
        serves_tekton=chosen.serves_tekton,
        reads_kinds=chosen.reads_kinds,
        credentials_in=chosen.credentials_in,
    )
    permissions = permissions_of(operator.registered.declaration, FACILITIES)
    deployed = _deployed(sorted(resolver.name for resolver in resolvers), chosen)
    found: list[Object] = []
    if chosen.is_namespace_made:
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chosen.home}})
    settings = {resolver_config_name(each.name): each.settings for each in resolvers}
    if chosen.keeps_lifecycle:
        found += [crd_manifest(resource) for resource in operator.defined_resources]
        settings = {GENERAL: GENERAL_SETTINGS, **settings}
    found += deployed.labelled(manifests(permissions, ObjectKey(chosen.home, chosen.name), chosen.watched))
    found += deployed.labelled(credential_roles(resolvers, chosen))
    for name, declared in settings.items():
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**deployed.metadata, "name": name}}
        found.append({**config_map, "data": {EXAMPLE: example_of(declared)}})
    if chosen.has_admission and chosen.keeps_lifecycle:
        judged = admission_manifests(chosen.name, chosen.home, chosen.watched, serves_tekton=chosen.serves_tekton)
        found += deployed.labelled(judged)
    return found + deployment_manifests(deployed)


def credential_roles(resolvers: Sequence[Resolver], chosen: ResolverPackaging) -> list[Object]:
    """The roles, and their bindings, that let credentials of single namespaces be read; by name, and none is listed.

    Args:
        resolvers: Those that are run.
        chosen: What was chosen.

    Raises:
        konverge.errors.ConfigurationError: A namespace is none.
    """
    resources = list(credential_kinds(resolvers))
    if EVERY_NAMESPACE in chosen.credentials_in or not resources:
        return []
    found: list[Object] = []
    for namespace in sorted(set(chosen.credentials_in)):
        if mistakes := dns_label_mistakes(namespace):
            raise ConfigurationError(f"namespace {namespace[:80]!r} of credentials: {mistakes[0]}")
        metadata = {"name": f"{chosen.name}-credentials", "namespace": namespace}
        rules = [{"apiGroups": [""], "resources": resources, "verbs": ["get"]}]
        found += [
            {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": dict(metadata),
                "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": metadata["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": chosen.name, "namespace": chosen.home}],
            },
        ]
    return found


def _deployed(names: Sequence[str], chosen: ResolverPackaging) -> Deployed:
    command = ["resolvers", "run", f"--only={','.join(names)}", f"--name={chosen.name}", f"--home={chosen.home}"]
    command += [] if chosen.keeps_lifecycle else ["--no-lifecycle"]
    command += ["--tekton"] if chosen.serves_tekton else []
    command += [f"--credentials={namespace}" for namespace in sorted(set(chosen.credentials_in))]
    command.append(f"--trusted-root={_ROOT}/trusted_root.json")
    # Neither has to be there: who wants keyless signatures, or a token for a server's API, makes it.
    volumes: dict[str, Object] = {"trusted-root": {"configMap": {"name": f"{GENERAL}-trusted-root", "optional": True}}}
    mounts = {"trusted-root": _ROOT}
    if "git" in names:
        volumes["tokens"] = {"secret": {"secretName": f"{resolver_config_name('git')}-tokens", "optional": True}}
        mounts["tokens"] = _TOKENS
    return Deployed(
        name=chosen.name,
        namespace=chosen.home,
        kind="konverge-resolvers",
        made_by="konverge-resolvers-package",
        image=chosen.image,
        command=command,
        replicas=chosen.replicas,
        watched=chosen.watched,
        temporary="4Gi" if "git" in names else "64Mi",  # of repositories, what is being fetched
        memory="2Gi" if "git" in names else "512Mi",  # git's processes are the Pod's, too
        volumes=volumes,
        mounts=mounts,
    )


def example_of(settings: Mapping[str, Setting]) -> str:
    """Settings with their defaults, as a ConfigMap documents them."""
    lines = ["# What can be set, with the defaults. Add keys beside this one; nothing of this one counts.", ""]
    for key, setting in settings.items():
        described = f"{setting.description} ({setting.type})"
        lines += (f"# {line}" for line in textwrap.wrap(described, _WIDTH))
        lines += [f'{key}: "{setting.default}"', ""]
    return "\n".join(lines[:-1]) + "\n"
