"""Interface of resolvers, and of the services that they receive.

A resolver never receives the request object or a Kubernetes client. It receives parameters and limited services:
connections only to permitted addresses, Secrets only of the requester's namespace, a folder with a quota, a deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge.clock import Clock
from konverge_resolution._internal.fetch_progress import FetchProgress
from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolved_content import MAX_CONTENT_BYTES, ResolvedContent
from konverge_resolution._internal.user_access import UserCredentials

__all__ = [
    "READS",
    "AddressResolver",
    "ClusterReader",
    "FetchRequest",
    "Parameter",
    "ParameterRole",
    "Resolver",
    "SecretReader",
    "Services",
    "Setting",
    "Workspaces",
    "list_credential_kinds",
]


READS = ("secrets",)
"""Default of the attribute ``reads``: the credentials of the requester's namespace that a resolver reads by name.

``secrets``, ``serviceaccounts``, both or nothing. The roles of an operator follow from it, so that a resolver without
credentials gives its operator no right to read any.
"""


class ParameterRole(StrEnum):
    """Meaning of a parameter, which decides whether a lock file may set it (`lock_validation`)."""

    PLACE = "place"
    """The identity of the definition. A locked reference takes it from the reference itself."""
    VERSION = "version"
    """The version, or which of several sources had it. A pin determines it, and the lock file records it."""
    CONTENT_DIGEST = "content-digest"
    """The digest of the content itself. Treated like a version; content with another digest is refused."""
    CREDENTIAL = "credential"
    """The credential to send. It never comes from a lock file."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a resolver; the table in the documentation is generated from these.

    Args:
        description: The meaning of the parameter.
        required: Whether the reference or the configuration must set it.
        setting: The setting with its default; empty for none.
        default: The value if neither the reference nor the setting has one; None for none.
        role: The role. A parameter that a resolver pins must be a version or a digest.
    """

    description: str
    required: bool = False
    setting: str = ""
    default: str | None = None
    role: ParameterRole = ParameterRole.PLACE


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a resolver's configuration, by its key in the ConfigMap.

    Args:
        description: The effect of the setting.
        type: ``text``, ``duration`` (``1m30s``), ``integer``, ``boolean`` or ``list`` (separated by commas).
        default: The value without configuration.
    """

    description: str
    type: str = "text"
    default: str = ""


class AddressResolver(Protocol):
    """Resolver of host names that returns only permitted addresses, for programs that open their own connections."""

    async def resolve_permitted(self, host: str, port: int) -> tuple[str, ...]:
        """Return the permitted addresses of a host, at least one; the host may be an address itself.

        The caller connects to one of them and does not resolve the name again.

        Raises:
            konverge_resolution.ResolutionError: ``Denied``: none of its addresses is permitted; ``Unreachable``: it has
                no address.
        """


class SecretReader(Protocol):
    """Reader of Secrets of the requester's namespace, by name only."""

    async def read_value(self, name: str, key: str) -> str:
        """Return one value of a Secret.

        Raises:
            konverge_resolution.ResolutionError: There is no such value. The message is the same for a missing Secret
                and a missing key, and contains neither name, so that it does not reveal which Secrets exist.
        """

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        """Return all values of one Secret.

        Raises:
            konverge_resolution.ResolutionError: There is no such Secret.
        """

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        """Return the names of the Secrets with which a ServiceAccount of the requester's namespace pulls images.

        Raises:
            konverge_resolution.ResolutionError: There is no such ServiceAccount.
        """


class ClusterReader(Protocol):
    """Reader of objects with the resolver's own permissions, for sources in the cluster."""

    async def find(self, kind: str, api_version: str = "") -> tuple[RestMapping, ...]:
        """Return the served kinds with this kind, plural or singular in any case.

        Args:
            kind: For example ``Ingress``, ``ingress`` or ``ingresses``.
            api_version: Limits the result to this version.

        Returns:
            One mapping for each API group with such a kind, in its preferred version; empty without any.
        """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        """Return one object of the cluster.

        Raises:
            konverge.errors.NotFoundError: There is no such object.
            konverge.errors.KindNotServedError: There is no such kind.
        """

    async def list_kinds(self) -> Iterable[str]:
        """Return all served kinds, for suggestions in messages."""

    async def list_names(self, gvk: GroupVersionKind, namespace: str) -> Iterable[str]:
        """Return names of objects for suggestions in messages; none unless the requester itself reads the cluster."""

    async def may_get(self, gvk: GroupVersionKind, key: ObjectKey, *, user: str) -> bool:
        """Tell whether a user or ServiceAccount (``system:serviceaccount:ns:name``) may read the object itself."""


class Workspaces(Protocol):
    """Temporary folders for content that does not fit into memory."""

    def folder(self, *, max_bytes: int) -> AbstractAsyncContextManager[Path]:
        """Provide an empty private folder with a limited size. It is removed after the block in any case."""


@dataclass(frozen=True, slots=True)
class Services:
    """Services for resolvers; each has limits that its provider enforces.

    Args:
        http: The guarded HTTP client (`konverge_resolution.network`): checked addresses, limited bodies, no ambient
            credentials.
        secrets: Secrets of the requester's namespace.
        workspaces: Temporary folders.
        clock: The clock.
        cluster: Objects of the cluster; None without a cluster, for example on the command line.
        addresses: Checked addresses for programs that open their own connections; None permits no connections.
        user_credentials: Credentials that the user of a command already has; None in a cluster.
        progress: Receives the phases of the resolution.
    """

    http: Any
    secrets: SecretReader
    workspaces: Workspaces
    clock: Clock
    cluster: ClusterReader | None = None
    addresses: AddressResolver | None = None
    user_credentials: UserCredentials | None = None
    progress: FetchProgress = field(default_factory=FetchProgress)


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Input of a resolver for one resolution.

    Args:
        params: The parameters with all defaults, validated by `Resolver.validate`.
        settings: The settings that the reference selected.
        namespace: The namespace of the requester.
        user: The Kubernetes user name of the requester; empty if unknown.
        seconds: Time limit in seconds; then the engine cancels the call.
        services: The services that the resolver may use.
        max_bytes: Maximum size of the content.
        wants_signatures: Whether a policy requires signatures, so that the resolver must also fetch those that the
            source keeps beside its content (`konverge_resolution.AttachedSignature`).
    """

    params: Parameters
    settings: Mapping[str, str]
    namespace: str
    user: str
    seconds: float
    services: Services
    max_bytes: int = MAX_CONTENT_BYTES
    wants_signatures: bool = False


class Resolver(Protocol):
    """Fetcher of definitions from one kind of source.

    Attributes:
        name: The name in references: a DNS label.
        parameters: The parameters by name.
        settings: The settings by key.
    """

    name: str
    parameters: Mapping[str, Parameter]
    settings: Mapping[str, Setting]

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the parameters with their defaults, checked as far as possible without a connection.

        Raises:
            konverge_resolution.ResolutionError: ``InvalidParams`` with the name of the parameter.
        """

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Return the address of the source without credentials; policies check it before any connection opens."""

    def is_pinned(self, params: Parameters) -> bool:
        """Tell whether the parameters name permanent content, for example by a commit or a digest."""

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Return permanent parameters for the current content; None if that is not cheaper than a fetch.

        Raises:
            konverge_resolution.ResolutionError: As `resolve`.
        """

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Fetch the content. A cancelled call ends its processes and connections before it returns.

        Raises:
            konverge_resolution.ResolutionError: There is no result.
        """


def list_credential_kinds(resolvers: Iterable[Resolver]) -> tuple[str, ...]:
    """Return the credentials that the resolvers read in a requester's namespace (`READS`), sorted."""
    return tuple(sorted({kind for resolver in resolvers for kind in getattr(resolver, "reads", READS)}))
