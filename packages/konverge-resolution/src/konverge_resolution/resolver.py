"""What a resolver is, and what it is given: the interface that anyone can write a source against.

A resolver never sees the request object or a Kubernetes client. It gets parameters and services whose use is bounded
already: connections only to addresses that are allowed, Secrets only of the requester's namespace, a folder with a
quota, a deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from konverge.clock import Clock
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge_resolution.reference import Parameters
from konverge_resolution.resolved_content import MAX_CONTENT_BYTES, ResolvedContent

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
"""What a resolver that does not say it in an attribute ``reads`` may get of the requester's namespace, by name.

``secrets``, ``serviceaccounts``, both or nothing: the roles of an operator come from it, so that a resolver without
credentials gives its operator no right to read any.
"""


class ParameterRole(StrEnum):
    """What a parameter says, and so where a locked reference takes it from (`konverge_resolution.lock_validation`)."""

    PLACE = "place"
    """Which definition is meant. A locked reference takes it from the reference itself."""
    VERSION = "version"
    """Which version of it, or which of several places had it. A pin settles it, and a lock file has it."""
    CONTENT_DIGEST = "content-digest"
    """The digest of the content itself. As a version, and content that it does not fit is refused."""
    CREDENTIAL = "credential"
    """Whose credential is sent. It never comes from a lock file."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a resolver; the documentation's table is made of these.

    Args:
        description: What it says.
        required: Whether there has to be one, from the reference or from the configuration.
        setting: The setting that gives its default; empty for none.
        default: Its value when neither says one; None for none.
        role: What it says. What a resolver pins has to be declared as a version or a digest.
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
        description: What it does.
        type: ``text``, ``duration`` (``1m30s``), ``integer``, ``boolean`` or ``list`` (texts between commas).
        default: Its value when nothing is said.
    """

    description: str
    type: str = "text"
    default: str = ""


class AddressResolver(Protocol):
    """Resolves names for programs that connect by themselves, and gives only what may be connected to."""

    async def resolve_permitted(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses of a host that may be connected to, at least one; a host may be an address itself.

        Whoever asks connects to one of these and does not resolve the name again.

        Raises:
            konverge_resolution.ResolutionError: ``Denied``: it has addresses, and none of them is allowed;
                ``Unreachable``: it has none.
        """


class SecretReader(Protocol):
    """Reads Secrets of the requester's namespace, by name only."""

    async def read_value(self, name: str, key: str) -> str:
        """One value.

        Raises:
            konverge_resolution.ResolutionError: There is none. The message is the same whether the Secret or the key is
                missing, and names neither: it would tell which Secrets there are.
        """

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        """All values of one Secret.

        Raises:
            konverge_resolution.ResolutionError: There is none.
        """

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        """The names of the Secrets with which a ServiceAccount of the requester's namespace pulls images.

        Raises:
            konverge_resolution.ResolutionError: There is no such ServiceAccount.
        """


class ClusterReader(Protocol):
    """Reads objects with the resolver's own permissions, for sources that are in the cluster."""

    async def find(self, kind: str, api_version: str = "") -> tuple[RestMapping, ...]:
        """Where a kind is served, by its kind, plural or singular in any case.

        Args:
            kind: For example ``Ingress``, ``ingress`` or ``ingresses``.
            api_version: Only in this version.

        Returns:
            One for each group that has such a kind, in its preferred version; empty when there is none.
        """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        """One object.

        Raises:
            konverge.errors.NotFoundError: There is none.
            konverge.errors.KindNotServedError: There is no such kind.
        """

    async def may_get(self, gvk: GroupVersionKind, key: ObjectKey, *, user: str) -> bool:
        """Tell whether a user or ServiceAccount (``system:serviceaccount:ns:name``) may read it by itself."""


class Workspaces(Protocol):
    """Folders for what does not fit into memory."""

    def folder(self, *, max_bytes: int) -> AbstractAsyncContextManager[Path]:
        """An empty private folder that is gone after the block, whatever happens in it; watched for its size."""


@dataclass(frozen=True, slots=True)
class Services:
    """What resolvers may use; each is bounded by who made it.

    Args:
        http: The guarded HTTP client (`konverge_resolution.network`): checked addresses, bounded bodies, no ambient
            credentials.
        secrets: Secrets of the requester's namespace.
        workspaces: Folders.
        clock: The time.
        cluster: Objects of the cluster; None where there is no cluster, on the command line for one.
        addresses: Checked addresses, for programs that connect by themselves; None lets none of them connect.
    """

    http: Any
    secrets: SecretReader
    workspaces: Workspaces
    clock: Clock
    cluster: ClusterReader | None = None
    addresses: AddressResolver | None = None


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """One resolution, as the resolver gets it.

    Args:
        params: Checked by `Resolver.validate`, with all defaults.
        settings: The resolver's configuration: the set that the reference chose.
        namespace: The requester's.
        user: Who asks, as Kubernetes names users; empty when nobody knows.
        seconds: How long it may take in all; the engine cancels it then.
        services: What it may use.
        max_bytes: How large the content may be.
        wants_signatures: Whether a policy asks for signatures, so that those which a source keeps beside its content
            (`konverge_resolution.AttachedSignature`) are to be got, too.
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
    """Gets definitions from one kind of source.

    Attributes:
        name: What references call it: a DNS label.
        parameters: Its parameters, by name.
        settings: Its settings, by key.
    """

    name: str
    parameters: Mapping[str, Parameter]
    settings: Mapping[str, Setting]

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """The parameters with their defaults, checked as far as that goes without asking anybody.

        Raises:
            konverge_resolution.ResolutionError: ``InvalidParams``, naming the parameter.
        """

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Where it would look, without credentials: what policies allow or refuse before anything is connected to."""

    def is_pinned(self, params: Parameters) -> bool:
        """Tell whether the parameters name the same content for ever: a commit, a digest."""

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Parameters that name for ever what these name now, found cheaply; None where there is no cheaper way.

        Raises:
            konverge_resolution.ResolutionError: As `resolve`.
        """

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Get the content. Cancelling it ends its processes and connections before it returns.

        Raises:
            konverge_resolution.ResolutionError: There is no result.
        """


def list_credential_kinds(resolvers: Iterable[Resolver]) -> tuple[str, ...]:
    """What resolvers may get of a requester's namespace (`READS`), sorted: resources of the core group."""
    return tuple(sorted({each for resolver in resolvers for each in getattr(resolver, "reads", READS)}))
