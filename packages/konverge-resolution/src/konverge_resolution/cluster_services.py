"""What resolvers get in a cluster: Secrets of the requester's namespace, objects, folders, connections."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping

from konverge.client import Client
from konverge.clock import Clock
from konverge.errors import ApiError, ConnectionFailedError, ForbiddenError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge.kube.name_validation import validate_dns_subdomain
from konverge_resolution.engine import Requester
from konverge_resolution.errors import ResolutionError
from konverge_resolution.host_services import HostServices
from konverge_resolution.network import AllowedNetworks
from konverge_resolution.policy import PolicyDecision
from konverge_resolution.reasons import Reason
from konverge_resolution.resolver import Services

__all__ = ["EVERY_NAMESPACE", "ClusterObjectReader", "ClusterServices", "NamespaceSecrets"]

EVERY_NAMESPACE = "*"
"""Among namespaces: all there are."""

_SECRET = GroupVersionKind("", "v1", "Secret")
_SERVICE_ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")
_MAX_PULL_SECRETS = 20


class NamespaceSecrets:
    """Secrets of one namespace, each read by its name when it is needed; none is held.

    Args:
        client: The cluster.
        namespace: The requester's.
    """

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def read_value(self, name: str, key: str) -> str:
        """One value.

        Raises:
            ResolutionError: ``AuthRequired``: there is none, with one message for all reasons; ``Unreachable``: the
                cluster does not answer.
        """
        found = await self.read_all(name)
        try:
            return found[key].decode()
        except (KeyError, UnicodeDecodeError):
            raise _build_missing_error() from None

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        """All values of one Secret.

        Raises:
            ResolutionError: As `value`.
        """
        secret = await self._get(_SECRET, name)
        try:
            return {key: base64.b64decode(value, validate=True) for key, value in (secret.get("data") or {}).items()}
        except (AttributeError, TypeError, binascii.Error):
            raise _build_missing_error() from None

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        """The names of the Secrets with which a ServiceAccount pulls images; at most twenty.

        Raises:
            ResolutionError: As `value`.
        """
        account = await self._get(_SERVICE_ACCOUNT, service_account)
        listed = account.get("imagePullSecrets")
        names = [each.get("name") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        return tuple(name for name in names if isinstance(name, str) and name)[:_MAX_PULL_SECRETS]

    async def _get(self, gvk: GroupVersionKind, name: str) -> Object:
        if validate_dns_subdomain(name):  # nothing else than a name may become part of a path
            raise _build_missing_error()
        try:
            return await self._client.get(gvk, ObjectKey(self._namespace, name))
        except (NotFoundError, ForbiddenError):
            raise _build_missing_error() from None
        except (ApiError, ConnectionFailedError):
            raise _build_unanswered_error() from None


class _NoSecrets:
    """Stands for the Secrets of a namespace in which the operator reads none (`konverge_resolution.SecretReader`)."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    async def read_value(self, name: str, key: str) -> str:
        raise self._build_error()

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        raise self._build_error()

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        raise self._build_error()

    def _build_error(self) -> ResolutionError:
        message = f"the reference needs a credential, and this operator reads none of namespace {self._namespace}"
        hint = f"--credentials {self._namespace} of konverge resolvers package lets it"
        return ResolutionError(Reason.AUTHENTICATION_REQUIRED, f"{message}; {hint}")


def _build_missing_error() -> ResolutionError:
    message = "a Secret or ServiceAccount that the reference needs, or a value in it, is not there or may not be read"
    return ResolutionError(Reason.AUTHENTICATION_REQUIRED, message)


def _build_unanswered_error() -> ResolutionError:
    return ResolutionError(Reason.UNREACHABLE, "the cluster did not answer")


class ClusterObjectReader:
    """Objects of the cluster, read with the permissions of this process (`konverge_resolution.ClusterReader`).

    Args:
        client: The cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def find(self, kind: str, api_version: str = "") -> tuple[RestMapping, ...]:
        """Where a kind is served, by its kind, plural or singular in any case; once for each group."""
        wanted = kind.lower()
        found: dict[tuple[str, str], RestMapping] = {}
        for mapping in await self._client.mappings():
            names = (mapping.gvk.kind.lower(), mapping.singular, mapping.plural)
            if wanted in names and api_version in ("", mapping.gvk.api_version):
                found.setdefault(mapping.gvk.group_kind, mapping)
        return tuple(found.values())

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        """One object."""
        return await self._client.get(gvk, key)

    async def may_get(self, gvk: GroupVersionKind, key: ObjectKey, *, user: str) -> bool:
        """Tell whether a user or ServiceAccount may read it by itself; an answer that does not come is no."""
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
    """The groups that Kubernetes gives a user of that name; those of other users nobody here knows."""
    everybody = ["system:authenticated"]
    match user.split(":"):
        case ["system", "serviceaccount", namespace, _]:
            return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", *everybody]
    return everybody


class ClusterServices:
    """Makes the services for each request; a `konverge_resolution.engine.ServicesFactory`.

    Args:
        client: The cluster, without a permit: what is done with it is to read.
        clock: The time.
        credentials_in: The namespaces whose Secrets may be read; requests of any other have none.
    """

    def __init__(self, client: Client, *, clock: Clock, credentials_in: Collection[str] = (EVERY_NAMESPACE,)) -> None:
        self._client = client
        self._credentials_in = frozenset(credentials_in)
        self._machine = HostServices(clock)

    def __call__(self, requester: Requester, admission: PolicyDecision) -> Services:
        """The services for one request: its connections reach the public internet, and what policies open besides."""
        namespace = requester.namespace
        may_read = not self._credentials_in.isdisjoint((namespace, EVERY_NAMESPACE))
        return self._machine.build_services(
            namespace,
            _build_networks(admission),
            secrets=NamespaceSecrets(self._client, namespace) if may_read else _NoSecrets(namespace),
            cluster=ClusterObjectReader(self._client),
        )

    def close(self) -> None:
        """Let go of what it has of the machine."""
        self._machine.close()


def _build_networks(admission: PolicyDecision) -> AllowedNetworks:
    opened_by = "spec.privateNetworks of a ResolutionPolicy allows one"
    return AllowedNetworks((str(network) for network in admission.private_networks), opened_by=opened_by)
