"""Services for resolvers in a cluster: Secrets of the requester's namespace, objects, folders, connections."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping

import msgspec

from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge._internal.kube.name_validation import validate_dns_subdomain
from konverge.clock import Clock
from konverge.errors import ApiError, ConnectionFailedError, ForbiddenError, NotFoundError
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.host_services import HostServices
from konverge_resolution._internal.network import AllowedNetworks, ConnectionPools
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolver import Services

__all__ = ["EVERY_NAMESPACE", "ClusterObjectReader", "ClusterServices", "NamespaceSecrets"]

EVERY_NAMESPACE = "*"
"""Stands for all namespaces in a list of namespaces."""

_SECRET = GroupVersionKind("", "v1", "Secret")
_SERVICE_ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")
_MAX_PULL_SECRETS = 20
_MAX_NAMES = 500
"""Maximum number of names for a suggestion."""


class NamespaceSecrets:
    """Secrets of one namespace, each read by name when it is needed; none is cached.

    Args:
        client: Client of the cluster.
        namespace: The namespace of the requester.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def read_value(self, name: str, key: str) -> str:
        """Return one value of a Secret.

        Raises:
            ResolutionError: ``AuthRequired``: there is no such value; the message is the same for all causes;
                ``Unreachable``: the API server does not respond.
        """
        values = await self.read_all(name)
        try:
            return values[key].decode()
        except (KeyError, UnicodeDecodeError):
            raise _build_missing_error() from None

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        """Return all values of one Secret.

        Raises:
            ResolutionError: As `read_value`.
        """
        secret = await self._get(_SECRET, name)
        try:
            return {key: base64.b64decode(value, validate=True) for key, value in (secret.get("data") or {}).items()}
        except (AttributeError, TypeError, binascii.Error):
            raise _build_missing_error() from None

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        """Return the names of the Secrets with which a ServiceAccount pulls images; at most twenty.

        Raises:
            ResolutionError: As `read_value`.
        """
        account = await self._get(_SERVICE_ACCOUNT, service_account)
        listed = account.get("imagePullSecrets")
        names = [entry.get("name") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        return tuple(name for name in names if isinstance(name, str) and name)[:_MAX_PULL_SECRETS]

    async def _get(self, gvk: GroupVersionKind, name: str) -> Object:
        if validate_dns_subdomain(name):  # only a valid name may become part of the request path
            raise _build_missing_error()
        try:
            return await self._client.get(gvk, ObjectKey(self._namespace, name))
        except (NotFoundError, ForbiddenError):
            raise _build_missing_error() from None
        except (ApiError, ConnectionFailedError):
            raise _build_unanswered_error() from None


class _NoSecrets:
    """Replacement for the Secrets of a namespace whose Secrets the operator must not read."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    async def read_value(self, name: str, key: str) -> str:
        raise self._build_error()

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        raise self._build_error()

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        raise self._build_error()

    def _build_error(self) -> ResolutionError:
        message = f"the operator must not read Secrets of namespace {self._namespace}, and the reference needs one"
        hint = f"allow it with konverge resolvers package --credentials {self._namespace}"
        return ResolutionError(Reason.AUTHENTICATION_REQUIRED, f"{message}; {hint}")


def _build_missing_error() -> ResolutionError:
    message = "a Secret or ServiceAccount of the reference, or a value in it, is missing or cannot be read"
    return ResolutionError(Reason.AUTHENTICATION_REQUIRED, message)


def _build_unanswered_error() -> ResolutionError:
    return ResolutionError(Reason.UNREACHABLE, "the API server did not respond")


class ClusterObjectReader:
    """Reader of objects with the permissions of this process (`konverge_resolution.ClusterReader`).

    Args:
        client: Client of the cluster.
        is_requester: Whether the user of this process is the requester, who may see what the client may list.
    """

    def __init__(self, client: Client, *, is_requester: bool = False) -> None:
        self._client = client
        self._is_requester = is_requester

    async def find(self, kind: str, api_version: str = "") -> tuple[RestMapping, ...]:
        """Return the served kinds with this kind, plural or singular in any case; one for each API group."""
        wanted = kind.lower()
        found: dict[tuple[str, str], RestMapping] = {}
        for mapping in await self._client.mappings():
            names = (mapping.gvk.kind.lower(), mapping.singular, mapping.plural)
            if wanted in names and api_version in ("", mapping.gvk.api_version):
                found.setdefault(mapping.gvk.group_kind, mapping)
        return tuple(found.values())

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        """Return one object of the cluster as it is stored."""
        return await self._client.get(gvk, key)

    async def list_kinds(self) -> list[str]:
        """Return all served kinds."""
        return [mapping.gvk.kind for mapping in await self._client.mappings()]

    async def list_names(self, gvk: GroupVersionKind, namespace: str) -> list[str]:
        """Return names of objects if the user of this process is the requester and may list them; otherwise none."""
        if not self._is_requester:
            return []
        try:
            page = await self._client.list_page(gvk, namespace=namespace, metadata_only=True, limit=_MAX_NAMES)
        except (ApiError, ConnectionFailedError):
            return []
        return [str(msgspec.json.decode(item)["metadata"]["name"]) for item in page.items]

    async def may_get(self, gvk: GroupVersionKind, key: ObjectKey, *, user: str) -> bool:
        """Tell whether a user or ServiceAccount may read the object itself; False if the review has no result."""
        mapping = await self._client.mapping(gvk)
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "groups": _list_groups(user),
                "resourceAttributes": {
                    "verb": "get",
                    "group": gvk.group,
                    "version": gvk.version,
                    "resource": mapping.plural,
                    "namespace": key.namespace,
                    "name": key.name,
                },
            },
        }
        status = (await self._client.create(review)).get("status") or {}
        return status.get("allowed") is True and status.get("denied") is not True


def _list_groups(user: str) -> list[str]:
    """Return the groups that Kubernetes gives to a user of that name. Groups of other users are unknown here."""
    everybody = ["system:authenticated"]
    match user.split(":"):
        case ["system", "serviceaccount", namespace, _]:
            return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", *everybody]
    return everybody


class ClusterServices:
    """Factory of the services for each request; a `engine.ServicesFactory`.

    Args:
        client: Client without a write permit, because services only read.
        clock: The clock.
        credentials_in: The namespaces whose Secrets may be read; requests of other namespaces have no credentials.
        pools: Open connections that requests of a namespace share; None for connections of each resolution.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        credentials_in: Collection[str] = (EVERY_NAMESPACE,),
        pools: ConnectionPools | None = None,
    ) -> None:
        self._client = client
        self._credentials_in = frozenset(credentials_in)
        self._machine = HostServices(clock, pools=pools)

    def __call__(self, requester: Requester, admission: PolicyDecision) -> Services:
        """Build the services for one request. They reach the public internet and the networks that policies permit."""
        namespace = requester.namespace
        may_read = not self._credentials_in.isdisjoint((namespace, EVERY_NAMESPACE))
        return self._machine.build_services(
            namespace,
            _build_networks(admission),
            secrets=NamespaceSecrets(self._client, namespace) if may_read else _NoSecrets(namespace),
            cluster=ClusterObjectReader(self._client),
        )

    def close(self) -> None:
        """Close the services that it shares with the process."""
        self._machine.close()


def _build_networks(admission: PolicyDecision) -> AllowedNetworks:
    opened_by = "permit it with spec.privateNetworks of a ResolutionPolicy"
    return AllowedNetworks((str(network) for network in admission.private_networks), opened_by=opened_by)
