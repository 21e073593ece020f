"""Images for the tests, as `tkn` and other tools push them; and what asks for them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge.clock import SeededEntropy, SystemClock
from konverge_resolution import FetchRequest, Reason, ResolutionError, ResolvedContent, Services
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.resolvers.bundles import BundlesResolver
from konverge_resolution.network import AllowedNetworks, ConnectionPools, GuardedHttp, TrustStore

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TAR = "application/vnd.oci.image.layer.v1.tar"
TAR_GZIP = f"{TAR}+gzip"
YAML = "application/yaml"
WEB = Requester("web")


def build_task(name: str, kind: str = "Task") -> bytes:
    return f"apiVersion: tekton.dev/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{}}\n".encode()


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def build_tar(content: bytes, name: str = "task.yaml", *, files: int = 1, **header: Any) -> bytes:
    """A tar of files; `header` changes what it says of them."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for number in range(files):
            info = tarfile.TarInfo(name if files == 1 else f"{number}-{name}")
            info.size = len(content)
            for key, value in header.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


@dataclass(frozen=True)
class Layer:
    """One layer."""

    data: bytes
    media_type: str = TAR_GZIP
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def descriptor(self) -> dict[str, Any]:
        message = {"mediaType": self.media_type, "digest": digest_of(self.data), "size": len(self.data)}
        return message | ({"annotations": dict(self.annotations)} if self.annotations else {})


def build_annotations(name: str, kind: str = "task", api_version: str = "tekton.dev/v1") -> dict[str, str]:
    message = {"name": name, "kind": kind, "apiVersion": api_version}
    return {f"dev.tekton.image.{key}": value for key, value in message.items() if value}


def object_layer(name: str, kind: str = "Task", *, data: bytes | None = None) -> Layer:
    """An object as `tkn bundle push` packs it."""
    packed = gzip.compress(build_tar(data if data is not None else build_task(name, kind), name), mtime=0)
    return Layer(packed, TAR_GZIP, build_annotations(name, kind.lower()))


def build_image(layers: Iterable[Layer], **more: Any) -> tuple[bytes, dict[str, bytes]]:
    """The manifest and the blobs of an image."""
    found, config = list(layers), b"{}"
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest_of(config), "size": 2},
        "layers": [layer.descriptor for layer in found],
        **more,
    }
    blobs = {digest_of(layer.data): layer.data for layer in found} | {digest_of(config): config}
    return json.dumps(manifest).encode(), blobs


def build_index(entries: Iterable[tuple[bytes, Mapping[str, Any]]]) -> bytes:
    """An index of manifests, each with what else its entry says."""
    listed = [
        {"mediaType": MANIFEST, "digest": digest_of(manifest), "size": len(manifest), **more}
        for manifest, more in entries
    ]
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}).encode()


BUNDLE = build_image([object_layer("build"), object_layer("build", "Pipeline"), object_layer("deploy")])


def build_docker_config(registry: str, user: str, password: str) -> dict[str, bytes]:
    """The data of a Secret with credentials for a registry."""
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {".dockerconfigjson": json.dumps({"auths": {registry: {"auth": encoded}}}).encode()}


@dataclass
class Secrets:
    """The Secrets and ServiceAccounts of one namespace; what was read is counted."""

    found: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    accounts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    reads: int = 0

    async def read_value(self, name: str, key: str) -> str:
        return (await self.read_all(name))[key].decode()

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        self.reads += 1
        if name not in self.found:
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, "a Secret is not there")
        return self.found[name]

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        if service_account not in self.accounts:
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, "a ServiceAccount is not there")
        return self.accounts[service_account]


async def resolve_to_loopback(host: str, port: int) -> list[str]:
    """Every name of the tests is the loopback interface."""
    if not host.endswith(".test"):
        raise OSError("no such name")
    return ["127.0.0.1"]


@dataclass
class BundleHarness:
    """Makes what asks a registry of the tests.

    Args:
        registry: Its name.
        settings: Of the resolver.
        secrets: By namespace.
        networks: Which networks may be reached.
        authorities: Whose certificates are trusted, in PEM.
        pools: Open connections that requests of a namespace share; none by default.
    """

    registry: str
    settings: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secrets] = field(default_factory=dict)
    networks: tuple[str, ...] = ("127.0.0.1/32",)
    authorities: str = ""
    pools: ConnectionPools | None = None

    @property
    def _settings(self) -> dict[str, str]:
        return {"plain-http-registries": self.registry, **self.settings}

    def services(self, requester: Requester, admission: PolicyDecision | None = None) -> Services:
        nothing: Any = None
        http = GuardedHttp(
            resolve_to_loopback,
            tls=TrustStore(self.authorities),
            networks=AllowedNetworks(self.networks),
            pools=self.pools,
            tenant=requester.namespace,
        )
        secrets = self.secrets.get(requester.namespace, Secrets())
        return Services(http=http, secrets=secrets, workspaces=nothing, clock=SystemClock())

    def engine(self, **more: Any) -> Engine:
        registry = ResolverRegistry.of([BundlesResolver()], {"bundles": self._settings})
        return Engine(registry, self.services, clock=SystemClock(), entropy=SeededEntropy(), **more)

    def fetch(self, bundle: str, name: str = "build", **params: str) -> FetchRequest:
        """A checked fetch of an image of the registry."""
        resolver = BundlesResolver()
        defaults, mistakes = parse_settings(self._settings, resolver.settings)
        assert not mistakes
        settings = defaults.select()
        given = {"bundle": f"{self.registry}/{bundle}", "name": name, **params}
        return FetchRequest(resolver.validate(given, settings), settings, "web", "", 60, self.services(WEB))

    async def get(self, bundle: str, name: str = "build", **params: str) -> ResolvedContent:
        """Resolve it without an engine: one attempt, no cache."""
        return await BundlesResolver().resolve(self.fetch(bundle, name, **params))
