"""Webhooks as an API server calls them, and the results for its clients."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from konverge._internal.certificates import CertificateAuthority
from konverge._internal.operator.webhook_registry import AdmissionRequest, WebhookRegistry
from konverge._internal.runtime.webhooks.self_signed_certificate import write_pair
from konverge.clock import SystemClock
from konverge.crd import find_definition
from konverge.errors import ApiError, ForbiddenError, InvalidError, ServerError
from konverge.kube import Object
from konverge.webhooks import AdmissionDeniedError, Violation, WebhookOptions
from konverge_cluster.testing import Cluster
from tests.operator.webhook_harness import KindVersions, Port, build_versions, register_conversions, webhook_harness

# The webhooks are asked over TLS, which takes real time.
pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


@pytest.fixture
def kind() -> KindVersions:
    return build_versions("webhooks.konverge.test")


@pytest.fixture
def registry(kind: KindVersions) -> WebhookRegistry:
    registry = WebhookRegistry()
    register_conversions(registry, kind)
    return registry


async def test_a_refusal_reaches_whoever_asked_with_every_mistake(
    cluster: Cluster, kind: KindVersions, registry: WebhookRegistry
) -> None:
    @registry.validates(kind.stored)
    def check(site: Any, request: AdmissionRequest[Any]) -> Any:
        if site.spec.replicas > 5:
            yield Violation("spec.replicas", f"at most 5, found {site.spec.replicas}")
        if not site.spec.image:
            yield "an image is needed"

    async with webhook_harness(cluster, kind, registry) as town:
        with pytest.raises(InvalidError) as refusal:
            await cluster.client.create(town.build_site(replicas=9))
        stored = await cluster.client.create(town.build_site(replicas=5, image="app"))

    webhook = f"validate.sites.v1.{town.gvk.group}"
    assert refusal.value.message == (
        f'admission webhook "{webhook}" denied the request: Site {cluster.namespace}/home is invalid: '
        "spec.replicas: at most 5, found 9; an image is needed"
    )
    assert [(cause.field, cause.message) for cause in refusal.value.causes] == [
        ("spec.replicas", "at most 5, found 9"),
        ("", "an image is needed"),
    ]
    assert stored["spec"]["replicas"] == 5


async def test_a_handler_knows_the_request(cluster: Cluster, kind: KindVersions, registry: WebhookRegistry) -> None:
    seen: list[tuple[Any, ...]] = []

    @registry.validates(kind.stored, on=("CREATE", "UPDATE", "DELETE"), subresources=("status",))
    async def look(site: Any, request: AdmissionRequest[Any]) -> None:
        if site.metadata.name == "home":
            old = None if request.old is None else request.old.spec.replicas
            seen.append((request.operation, request.subresource, request.dry_run, site.spec.replicas, old))
            assert request.user.username
            assert "system:authenticated" in request.user.groups
            assert request.key == site.metadata.key

    async with webhook_harness(cluster, kind, registry) as town:
        client = cluster.client
        await client.apply(town.build_site(replicas=1), field_manager="test", dry_run=True)
        stored = await client.create(town.build_site(replicas=2))
        stored = await client.update({**stored, "spec": {"replicas": 3}})
        await client.update({**stored, "status": {"url": "https://home"}}, subresource="status")
        await client.delete(town.gvk, town.key())

    assert seen == [
        ("CREATE", "", True, 1, None),
        ("CREATE", "", False, 2, None),
        ("UPDATE", "", False, 3, 2),
        ("UPDATE", "status", False, 3, 3),
        ("DELETE", "", False, 3, 3),
    ]


async def test_a_deletion_can_be_refused(cluster: Cluster, kind: KindVersions, registry: WebhookRegistry) -> None:
    locked = {"home"}

    @registry.validates(kind.stored, on=("DELETE",))
    def keep(site: Any, request: AdmissionRequest[Any]) -> None:
        if site.metadata.name in locked:
            raise AdmissionDeniedError("the site is locked")

    async with webhook_harness(cluster, kind, registry) as town:
        await cluster.client.create(town.build_site())
        with pytest.raises(ForbiddenError, match="denied the request: the site is locked"):
            await cluster.client.delete(town.gvk, town.key())
        locked.clear()
        await cluster.client.delete(town.gvk, town.key())


async def test_a_warning_reaches_whoever_asked(cluster: Cluster, kind: KindVersions, registry: WebhookRegistry) -> None:
    @registry.validates(kind.stored)
    def look(site: Any, request: AdmissionRequest[Any]) -> None:
        request.warn('spec.image: "latest" is not a version')

    async with webhook_harness(cluster, kind, registry) as town:
        answer = await cluster.new_transport().request(
            "POST",
            find_definition(kind.stored).mapping.build_path(namespace=cluster.namespace),
            headers={"content-type": "application/json"},
            body=json.dumps(town.build_site(image="app:latest")).encode(),
            timeout_seconds=60,
        )

    assert answer.status == 201
    assert answer.headers["warning"] == '299 - "spec.image: \\"latest\\" is not a version"'


async def test_what_a_handler_fills_in_is_stored_and_all_else_stays(
    cluster: Cluster, kind: KindVersions, registry: WebhookRegistry
) -> None:
    @registry.defaults(kind.stored)
    def fill(site: Any, request: AdmissionRequest[Any]) -> None:
        site.spec.image = site.spec.image or "app:1"
        site.metadata.labels["konverge.test/tier"] = "yes"
        site.spec.ports.append(Port("metrics", 9090))

    @registry.defaults(kind.stored)
    async def spread(site: Any, request: AdmissionRequest[Any]) -> Any:
        site.spec.zones = {*site.spec.zones, "a"}
        return site

    async with webhook_harness(cluster, kind, registry) as town:
        sent = town.build_site(replicas=3, ports=[{"name": "http", "port": 80}], zones=["z", "b"])
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0a4c8f10-2f0d-4b7e-9d39-0b9b7a1c2d3e"}
        sent["metadata"] |= {"ownerReferences": [owner], "finalizers": ["konverge.test/hold"]}
        stored = await cluster.client.create(sent)
        generated = town.build_site()
        generated["metadata"] = {"generateName": "some-", "namespace": cluster.namespace}
        named = await cluster.client.create(generated)
        await cluster.client.patch(town.gvk, town.key(), {"metadata": {"finalizers": None}}, patch_type="merge")

    assert stored["spec"] == {
        "replicas": 3,
        "image": "app:1",
        "ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}],
        "zones": ["a", "b", "z"],
    }
    assert stored["metadata"]["labels"] == {"konverge.test/tier": "yes"}
    assert stored["metadata"]["ownerReferences"] == [owner]
    assert stored["metadata"]["finalizers"] == ["konverge.test/hold"]
    assert named["metadata"]["name"].startswith("some-")
    assert named["spec"]["image"] == "app:1"


async def test_another_version_is_judged_in_the_form_of_the_handlers(
    cluster: Cluster, kind: KindVersions, registry: WebhookRegistry
) -> None:
    @registry.validates(kind.stored)
    def check(site: Any, request: AdmissionRequest[Any]) -> Any:
        return ["too many"] if site.spec.replicas > 5 else None

    async with webhook_harness(cluster, kind, registry) as town:
        with pytest.raises(InvalidError, match="too many"):
            await cluster.client.create(town.build_site(gvk=town.old_gvk, deployment="9 x app"))


async def test_both_versions_read_list_and_watch_what_the_other_wrote(
    cluster: Cluster, kind: KindVersions, registry: WebhookRegistry
) -> None:
    client = cluster.client
    async with webhook_harness(cluster, kind, registry) as town:
        begin = (await client.list(town.gvk, namespace=cluster.namespace)).resource_version
        written = await client.create(town.build_site("one", gvk=town.old_gvk, deployment="3 x app:1"))
        await client.create(town.build_site("two", replicas=7, image="app:2"))
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "Healthy",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        written["status"] = {"url": "https://one", "conditions": [condition]}
        await client.update(written, subresource="status")

        new = await client.get(town.gvk, town.key("one"))
        old = await client.get(town.old_gvk, town.key("two"))
        listed = await client.list(town.old_gvk, namespace=cluster.namespace)
        watched: list[Object] = []
        async with (
            asyncio.timeout(20),
            client.watch(town.old_gvk, namespace=cluster.namespace, resource_version=begin) as events,
        ):
            async for event in events:
                watched.append(event.object)
                if len(watched) == 3:
                    break
        applied = await client.apply(
            town.build_site("two", gvk=town.old_gvk, deployment="8 x app:2"), field_manager="test"
        )
        back = await client.get(town.gvk, town.key("two"))

    assert new["spec"] == {"replicas": 3, "image": "app:1", "ports": [], "zones": []}
    assert new["status"] == {"url": "https://one", "conditions": [condition]}
    assert new["metadata"]["uid"] == written["metadata"]["uid"]
    assert old["spec"] == {"deployment": "7 x app:2"}
    assert [(each["apiVersion"], each["spec"]["deployment"]) for each in listed.items] == [
        (town.old_gvk.api_version, "3 x app:1"),
        (town.old_gvk.api_version, "7 x app:2"),
    ]
    assert [each["spec"]["deployment"] for each in watched] == ["3 x app:1", "7 x app:2", "3 x app:1"]
    assert applied.object["spec"] == {"deployment": "8 x app:2"}
    assert back["spec"]["replicas"] == 8


async def test_an_object_that_cannot_be_converted_is_refused_with_the_reason(
    cluster: Cluster, kind: KindVersions, registry: WebhookRegistry
) -> None:
    async with webhook_harness(cluster, kind, registry) as town:
        with pytest.raises(ServerError) as failure:
            await cluster.client.create(town.build_site(gvk=town.old_gvk, deployment="many"))

    assert "conversion webhook for" in failure.value.message
    assert f"Site {cluster.namespace}/home cannot be converted to {town.gvk.api_version}" in failure.value.message
    assert "up failed with ValueError" in failure.value.message
    assert "many" not in failure.value.message


@pytest.mark.slow
async def test_a_handler_that_fails_hangs_or_returns_nonsense_is_a_refusal_that_names_it(
    cluster: Cluster, kind: KindVersions, registry: WebhookRegistry
) -> None:
    # The server gives up a tenth of it later than the handler is ended, which has to suffice on a busy machine.
    patience = timedelta(seconds=3)

    @registry.validates(kind.stored, timeout=patience)
    async def careless(site: Any, request: AdmissionRequest[Any]) -> Any:
        match site.spec.image:
            case "raise":
                raise RuntimeError(f"{site.spec.image} hunter2")
            case "hang":
                await asyncio.Event().wait()
            case "nonsense":
                return 7
        return None

    async with webhook_harness(cluster, kind, registry, timeout=patience) as town:
        responses = {}
        for image in ("raise", "hang", "nonsense"):
            with pytest.raises(ApiError) as failure:
                await cluster.client.create(town.build_site(image=image))
            responses[image] = failure.value
        await cluster.client.create(town.build_site(image="fine"))

    assert "careless failed with RuntimeError; the operator's log has the error" in responses["raise"].message
    assert "hunter2" not in responses["raise"].message
    assert responses["raise"].code == 500
    assert "careless" in responses["hang"].message
    assert "took longer than 2." in responses["hang"].message
    assert responses["hang"].code == 504
    assert "careless returned int; expected None, or an iterable" in responses["nonsense"].message


@pytest.mark.slow
async def test_certificates_and_authorities_are_rotated_while_requests_go_on(
    cluster: Cluster, kind: KindVersions, registry: WebhookRegistry, tmp_path: Path
) -> None:
    now = SystemClock().now()
    one, two = CertificateAuthority("one", now), CertificateAuthority("two", now)
    both = one.pair.certificate + two.pair.certificate
    hosts = ["127.0.0.1"]
    write_pair(tmp_path, one.issue(hosts, now), one.pair.certificate)
    options = WebhookOptions(port=0, certificate_folder=tmp_path, poll_interval=timedelta(seconds=0.02))
    written = 0

    async with webhook_harness(cluster, kind, registry, options) as town:
        stop = asyncio.Event()

        async def write() -> None:
            nonlocal written
            while not stop.is_set():
                await cluster.client.create(town.build_site(f"site-{written}"))
                written += 1

        async def some_more() -> None:
            until = written + 10
            await cluster.eventually(lambda: written >= until, describe="requests go on")

        writing = asyncio.create_task(write())
        # First everybody trusts both authorities, then the other one signs, then the first one is forgotten.
        steps = {"trust-both": (one, both), "other-signs": (two, both), "forget-one": (two, two.pair.certificate)}
        for step, (authority, bundle) in steps.items():
            reads = town.server.certificate.reads
            write_pair(tmp_path, authority.issue(hosts, now), bundle)
            await cluster.eventually(partial(town.has_read, reads), describe="the certificate is read again")
            await town.register(f"{step}.")
            await town.wait_until_called(f"{step}.")
            await some_more()
        stop.set()
        await writing  # it would raise what any of its requests had met

    assert written >= 30
