"""On the real API server: an operator has all it needs with exactly the roles of ``konverge rbac`` for its options.

Each case runs the operator with the token of its ServiceAccount, lets everything happen that its options bring, stops
it, and looks for refused requests in the audit log.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from aiohttp import ClientSession

from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.run import run
from konverge._internal.cli.run_options import RunFlags
from konverge._internal.client.credentials import BearerToken
from konverge._internal.client.http_transport import HttpTransport
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge._internal.operator.permission_check import find_missing_permissions
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge._internal.operator.process_builder import build_process
from konverge._internal.runtime.webhooks import WebhookEndpoint
from konverge.client import Client
from konverge.clock import SystemClock, SystemEntropy
from konverge.crd import crd_manifest, find_definition
from konverge.errors import InvalidError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import Operator, RunOptions
from konverge_cluster._internal.testing.webhook_readiness import wait_for_webhooks
from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge
from tests.database_servers import free_port

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)]),
]

OPERATOR = """
from dataclasses import dataclass
from konverge import ComponentBuilder, Metadata, Operator, custom_resource
from konverge.primitives import ConfigMap


@dataclass
class Spec:
    greeting: str = ""


@custom_resource(group="options.konverge.test", version="v1")
@dataclass
class Inn:
    metadata: Metadata
    spec: Spec


operator = Operator("inns")


def sign(inn):
    name = {"name": f"{inn.metadata.name}-sign", "namespace": inn.metadata.namespace}
    sign = ConfigMap({"metadata": name, "data": {"greeting": inn.spec.greeting}})
    return ComponentBuilder("sign", condition_type="SignReady").with_resource(sign).build()


operator.manages(Inn, sign)


@operator.validates(Inn)
def polite(inn, request):
    return ["no inn greets like that"] if inn.spec.greeting == "rude" else []


@operator.defaults(Inn)
def friendly(inn, request):
    inn.spec.greeting = inn.spec.greeting or "Welcome"
"""
ACCOUNT = "innkeeper"
LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
SECRET = GroupVersionKind("", "v1", "Secret")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
VALIDATING = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")

# Those that choose who works exclude each other; every other combination is here.
LEASES = ((), ("--leader-elect",), ("--shards", "2"))
OTHERS = ("--register-webhooks", "--webhook-secret", "--metrics-auth")
CASES = [
    (*leases, *(option for option, is_given in zip(OTHERS, given, strict=True) if is_given))
    for leases in LEASES
    for given in itertools.product((False, True), repeat=len(OTHERS))
]


class RoleHarness:
    """The operator and the cluster, with the roles of some options.

    Args:
        cluster: The cluster.
        file: The operator's file.
        options: The options whose effect is of interest.
    """

    def __init__(self, cluster: Cluster, file: Path, options: tuple[str, ...]) -> None:
        self.cluster = cluster
        self.metrics_port = free_port()
        self.arguments = ["--namespace", cluster.namespace]
        for option in options:
            self.arguments.append(option)
            if option == "--webhook-secret":
                self.arguments.append(f"{cluster.namespace}/tls")
        self.operator: Operator = load_operator(parse_operator_reference(str(file)))
        only_run = ["--webhooks", f"127.0.0.1:{free_port()}", "--metrics", f"127.0.0.1:{self.metrics_port}"]
        only_run += ["--lease-seconds", "3"] if options[:1] in (("--shards",), ("--leader-elect",)) else []
        with run.make_context("run", [str(file), *self.arguments, *only_run]) as context:
            not_of_runs = ("file", "kubeconfig_file", "context", "local", "install_crds", "log_format")
            flags = {name: value for name, value in context.params.items() if name not in not_of_runs}
        self.options: RunOptions = RunFlags(**flags).build_options(self.operator.name, home=cluster.namespace)
        self.gvk = find_definition(self.operator.custom_resources[0]).gvk

    def inn(self, name: str, greeting: str) -> Object:
        """A desired owner."""
        return {
            "apiVersion": self.gvk.api_version,
            "kind": self.gvk.kind,
            "metadata": {"name": name, "namespace": self.cluster.namespace},
            "spec": {"greeting": greeting},
        }

    @asynccontextmanager
    async def granting_roles(self, manifests: list[Object]) -> AsyncIterator[str]:
        """Apply the roles; gives a token of the ServiceAccount with which they have come into effect."""
        admin = self.cluster.client
        for manifest in manifests:
            await admin.apply(manifest, field_manager="tests")
        try:
            account = GroupVersionKind("", "v1", "ServiceAccount"), ObjectKey(self.cluster.namespace, ACCOUNT)
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            issued = await admin.create_subresource(*account, "token", request)
            token = issued["status"]["token"]
            permissions = derive_permissions(self.operator.registered.declaration, self.options.runtime_features)
            home, namespaces = self.cluster.namespace, self.options.namespaces
            async with self.acting(token, "check") as client:

                async def is_granted() -> bool:
                    return not await find_missing_permissions(
                        client, permissions, role=ACCOUNT, home=home, namespaces=namespaces
                    )

                await self.cluster.eventually(is_granted, describe="the roles are in effect, and are enough")
            yield token
        finally:
            for manifest in manifests:
                with suppress(NotFoundError):
                    await admin.delete(GroupVersionKind.of(manifest), ObjectKey.of(manifest))

    @asynccontextmanager
    async def acting(self, token: str, user_agent: str) -> AsyncIterator[Client]:
        """A client of the ServiceAccount."""
        config = load_kubeconfig(await self.cluster.write_kubeconfig(), env={})
        nobody = replace(config.tls, certificate=b"", key=b"", certificate_file=None, key_file=None)
        transport = HttpTransport(replace(config, credentials=BearerToken(token), tls=nobody))
        async with Client(transport, user_agent=user_agent) as client:
            yield client

    @asynccontextmanager
    async def running(self, client: Client) -> AsyncIterator[None]:
        """Run the operator within the block, and end it as a signal does."""
        entropy = SystemEntropy()
        process = build_process(self.operator.registered, client, self.options, clock=SystemClock(), entropy=entropy)
        task = asyncio.create_task(process.run())
        try:
            if self.options.registers_webhooks:
                await wait_for_webhooks(
                    self.cluster.client,
                    self.operator.registered.build_webhook_manifests(WebhookEndpoint("")),
                    lambda: self.cluster.list_requests(self.operator.name),
                    namespace=self.cluster.namespace,
                    clock=self.cluster.clock,
                )
            yield
        finally:
            process.stop()
            await task

    async def metrics_status(self, token: str = "") -> int:
        """What whoever asks for metrics is answered."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with (
            ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.metrics_port}/metrics", headers=headers) as answer,
        ):
            return answer.status


@pytest.mark.parametrize("options", CASES, ids=lambda options: " ".join(options) or "no options")
async def test_the_roles_of_the_same_options_are_enough(
    options: tuple[str, ...], cluster: Cluster, konverge: Konverge, tmp_path: Path
) -> None:
    file = tmp_path / "inns.py"
    file.write_text(OPERATOR)
    inns = RoleHarness(cluster, file, options)
    printed = konverge("rbac", file, "--account", f"{cluster.namespace}/{ACCOUNT}", *inns.arguments)
    assert printed.returncode == 0, printed.stderr
    await cluster.install(*map(crd_manifest, inns.operator.defined_resources))

    async with (
        inns.granting_roles(list(yaml.safe_load_all(printed.stdout))) as token,
        inns.acting(token, inns.operator.name) as client,
        inns.running(client),
    ):
        await cluster.client.create(inns.inn("corner", "Ahoy"))
        await cluster.wait_for_condition(inns.gvk, "corner")
        await see_what_the_options_bring(inns, options, token)

    refused = [request for request in cluster.list_requests(inns.operator.name) if request.code in (401, 403)]
    assert refused == []
    if "--register-webhooks" in options:
        with pytest.raises(NotFoundError):
            await cluster.client.get(VALIDATING, ObjectKey("", inns.operator.name))


async def see_what_the_options_bring(inns: RoleHarness, options: tuple[str, ...], token: str) -> None:
    admin, namespace = inns.cluster.client, inns.cluster.namespace
    sign = await admin.get(CONFIG_MAP, ObjectKey(namespace, "corner-sign"))
    assert sign["data"] == {"greeting": "Ahoy"}
    if "--register-webhooks" in options:
        with pytest.raises(InvalidError, match="no inn greets like that"):
            await admin.create(inns.inn("rough", "rude"))
        assert (await admin.create(inns.inn("mute", "")))["spec"] == {"greeting": "Welcome"}
    if "--webhook-secret" in options:
        assert (await admin.get(SECRET, ObjectKey(namespace, "tls")))["data"].keys() >= {"tls.crt", "tls.key"}
    leases = {
        lease["metadata"]["name"]: lease["spec"] for lease in (await admin.list(LEASE, namespace=namespace)).items
    }
    held = {name for name, spec in leases.items() if spec.get("holderIdentity")}
    shards = {"inns-shard-0-of-2", "inns-shard-1-of-2"}
    members = {name for name in held if name.startswith("inns-member-of-2-")}
    if "--shards" in options:
        assert held & shards
        assert len(members) == 1
    else:
        assert held == ({"inns"} if "--leader-elect" in options else set())
    if "--metrics-auth" in options:
        # Who it is was asked, and then whether this account may: it may not.
        assert [await inns.metrics_status(), await inns.metrics_status(token)] == [401, 403]
    else:
        assert await inns.metrics_status() == 200
