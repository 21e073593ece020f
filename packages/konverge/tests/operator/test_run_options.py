"""The services of a run besides the controllers: events, metrics, probes and the permission check."""

import asyncio
import logging
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from konverge._internal.runtime.event_recorder import ClusterEventRecorder
from konverge.client import Client, HttpTransport, Response, Transport, load_kubeconfig
from konverge.crd import Metadata, crd_manifest, custom_resource
from konverge.errors import ConfigurationError, InvalidError, NotFoundError, ServerError, StartError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.observability import ObservabilityOptions
from konverge.operator import Change, Operator, OwnerContext, RunOptions
from konverge.webhooks import AdmissionRequest, ServiceReference, WebhookOptions
from tests.cancellation_leaks import cancel_again
from tests.operator.sample_operator import (
    LOOSE_SHOP,
    SECRET,
    SHOP,
    LooseShop,
    OperatorHarness,
    Shop,
    ShopSpec,
    find_free_address,
    settings,
)

pytestmark = pytest.mark.anyio

CONFIGURATION = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")
DEFAULTING = GroupVersionKind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration")
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")


@custom_resource(group="operator.konverge.test", version="v1beta1", kind="Shop")
@dataclass
class OldShop:
    """An earlier version of the kind."""

    metadata: Metadata
    spec: ShopSpec


def an_operator() -> Operator:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    return operator


async def events_about(town: OperatorHarness, name: str) -> list[Object]:
    found = await town.client.list(EVENT, namespace=town.namespace)
    return [event for event in found.items if event["regarding"]["name"] == name]


async def test_what_happens_to_an_owners_objects_is_told_by_events(town: OperatorHarness) -> None:
    async with town.running_operator(an_operator()):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        (event,) = await town.cluster.eventually(lambda: events_about(town, "corner"), describe="an event")

    assert (event["type"], event["action"], event["reportingController"]) == ("Normal", "Create", "shops")
    assert event["related"]["name"] == "corner-settings"


async def test_events_can_be_switched_off(town: OperatorHarness) -> None:
    async with town.running_operator(an_operator(), RunOptions((town.namespace,), records_events=False)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.wait_until_quiet()

    assert await events_about(town, "corner") == []


@pytest.mark.real_time
async def test_metrics_and_probes_tell_of_the_operator_at_work(town: OperatorHarness) -> None:
    found: list[str] = []
    metrics, probes = find_free_address(), find_free_address()
    serving = ObservabilityOptions(metrics, probes)
    async with (
        town.running_operator(an_operator(), RunOptions((town.namespace,), observability=serving)),
        aiohttp.ClientSession() as session,
    ):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")

        async def is_ready() -> bool:
            with suppress(aiohttp.ClientError):
                async with session.get(f"http://{probes}/readyz?verbose") as answer:
                    found[:] = [await answer.text()]
                    return answer.status == 200
            return False

        await town.cluster.eventually(is_ready, describe="the operator says that it is ready")
        async with session.get(f"http://{metrics}/metrics") as answer:
            text = await answer.text()

    assert "readyz check passed" in found[0]
    assert 'controller_runtime_reconcile_total{controller="shop",result="success"}' in text
    assert 'controller_runtime_max_concurrent_reconciles{controller="shop"} 10' in text
    applied = 'component="settings",controller="shop",kind="ConfigMap",operation="created",owner_kind="Shop"'
    assert f'konverge_resource_apply_total{{{applied},resource="configmap"}} 1.0' in text
    assert 'rest_client_requests_total{code="201",host=' in text


@pytest.mark.real
@pytest.mark.parametrize("cluster_kind", ["real"], indirect=False)
async def test_missing_permissions_are_told_with_the_rule_to_add(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    config = load_kubeconfig(await town.cluster.write_kubeconfig(), env={})
    nobody = HttpTransport(replace(config, impersonation=(("Impersonate-User", "nobody"),)))
    async with Client(nobody, user_agent="nobody", clock=town.clock) as client:
        options = RunOptions((town.namespace,), checks_permissions=True, start_timeout=timedelta())
        with pytest.raises(StartError, match="shops"):
            await an_operator().run(client, options)

    assert (
        f"missing permission: add to Role shops in namespace {town.namespace}: "
        "{apiGroups: [''], resources: [configmaps], verbs: [create, get, list, patch, watch]}"
    ) in caplog.messages


async def test_handlers_without_an_address_are_told(town: OperatorHarness, caplog: pytest.LogCaptureFixture) -> None:
    operator = an_operator()
    operator.validates(Shop)(lambda shop, request: None)

    with caplog.at_level(logging.WARNING):
        async with town.running_operator(operator):
            await town.create_shop("corner")
            await town.wait_until_ready("corner")

    assert "webhook handlers are registered but not served" in caplog.text


async def test_handlers_that_convert_are_told_too(town: OperatorHarness, caplog: pytest.LogCaptureFixture) -> None:
    operator = an_operator()
    operator.converts(Shop, OldShop)(lambda shop: OldShop(shop.metadata, shop.spec))
    operator.converts(OldShop, Shop)(lambda shop: Shop(shop.metadata, shop.spec))

    with caplog.at_level(logging.WARNING):
        async with town.running_operator(operator):
            await town.create_shop("corner")
            await town.wait_until_ready("corner")

    assert "webhook handlers are registered but not served" in caplog.text


@pytest.mark.real_time
async def test_a_certificate_in_a_secret_is_made_when_the_operator_starts(town: OperatorHarness) -> None:
    operator = an_operator()
    operator.validates(Shop)(lambda shop, request: None)
    key = ObjectKey(town.namespace, "shops-webhooks")
    webhooks = WebhookOptions(port=0, certificate_secret=key)

    async with town.running_operator(operator, RunOptions((town.namespace,), webhooks=webhooks)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        secret = await town.client.get(SECRET, key)

    assert {"ca.crt", "tls.crt", "tls.key"} <= set(secret["data"])


@pytest.mark.real_time
async def test_each_owners_conditions_are_exported_where_that_is_asked_for(town: OperatorHarness) -> None:
    metrics = find_free_address()
    serving = ObservabilityOptions(metrics, "0", per_owner_conditions=True)
    async with (
        town.running_operator(an_operator(), RunOptions((town.namespace,), observability=serving)),
        aiohttp.ClientSession() as session,
    ):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")

        async def exported() -> bool:
            async with session.get(f"http://{metrics}/metrics") as answer:
                text = await answer.text()
            return any(
                line.startswith("konverge_controller_condition{") and 'name="corner"' in line
                for line in text.splitlines()
            )

        await town.cluster.eventually(exported, describe="the owner's conditions are exported")


@pytest.mark.real_time
async def test_probes_alone_need_no_library(town: OperatorHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    probes = find_free_address()
    serving = ObservabilityOptions("0", probes)
    async with (
        town.running_operator(an_operator(), RunOptions((town.namespace,), observability=serving)),
        aiohttp.ClientSession() as session,
    ):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        async with session.get(f"http://{probes}/livez") as answer:
            assert answer.status == 200


@pytest.mark.real_time
async def test_an_operator_whose_events_are_sent_no_longer_is_not_live(
    town: OperatorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(events: ClusterEventRecorder) -> None:
        raise RuntimeError("a mistake that nobody foresaw")

    monkeypatch.setattr(ClusterEventRecorder, "run", broken)
    probes = find_free_address()
    serving = ObservabilityOptions("0", probes)
    async with (
        town.running_operator(an_operator(), RunOptions((town.namespace,), observability=serving)),
        aiohttp.ClientSession() as session,
    ):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        async with session.get(f"http://{probes}/livez") as answer:
            assert answer.status == 500
            assert "[-]tasks failed: ended unexpectedly: events" in await answer.text()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"namespaces": ("",)}, "namespace '': "),
        ({"namespaces": ("default", "UPPER case")}, "namespace 'UPPER case': "),
        ({"namespaces": "default"}, "expected a tuple"),
        ({"home": "a/b"}, "namespace 'a/b': "),
        ({"grace": timedelta(seconds=-1)}, "grace: expected zero or more"),
        ({"function_limit": timedelta(seconds=-1)}, "function_limit: expected zero or more"),
        ({"webhooks": WebhookOptions(port=99999)}, "expected 0 to 65535, found 99999"),
        ({"webhooks": WebhookOptions("a b")}, "expected a name or an IP address, found 'a b'"),
        ({"webhooks": WebhookOptions(service=ServiceReference("a", "../../b"))}, "Service of the webhooks: name "),
        ({"webhooks": WebhookOptions(certificate_secret=ObjectKey("", "b"))}, "Secret of the webhooks: namespace "),
        (
            {"webhooks": WebhookOptions(certificate_folder=Path("/c"), certificate_secret=ObjectKey("a", "b"))},
            "exclude each other",
        ),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_runs(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        RunOptions(**given)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        ObservabilityOptions("nowhere")


@pytest.mark.real_time
async def test_webhooks_are_served_registered_and_taken_back(town: OperatorHarness) -> None:
    operator = an_operator()

    @operator.validates(Shop)
    def polite(shop: Shop, request: AdmissionRequest[Shop]) -> list[str]:
        return ["no shop greets like that"] if shop.spec.greeting == "rude" else []

    options = RunOptions((town.namespace,), webhooks=WebhookOptions(port=0), registers_webhooks=True)
    async with town.running_operator(operator, options):

        async def is_refused() -> bool:
            try:
                await town.create_shop("corner", greeting="rude")
            except InvalidError as error:
                return "no shop greets like that" in str(error)
            await town.client.delete(SHOP, town.key("corner"))
            return False

        await town.cluster.eventually(is_refused, describe="the webhook is asked")
        await town.create_shop("corner", greeting="Ahoy")
        await town.wait_until_ready("corner")

    async def is_asked_no_more() -> bool:
        try:
            await town.create_shop("market", greeting="rude")
        except (InvalidError, ServerError):
            return False
        return True

    await town.cluster.eventually(is_asked_no_more, describe="nobody asks the webhook any more")


class HeldTransport:
    """Notes when a validating webhook is to be registered, and never sends that."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.stream = transport.stream
        self.close = transport.close
        self.is_asked = asyncio.Event()

    async def request(self, method: str, path: str, **options: Any) -> Response:
        if method == "PATCH" and "validatingwebhook" in path:
            self.is_asked.set()
            await asyncio.Event().wait()
        return await self._transport.request(method, path, **options)


@pytest.mark.real_time
async def test_webhooks_are_taken_back_by_who_is_cancelled_while_registering_and_again_then(
    town: OperatorHarness,
) -> None:
    operator = an_operator()
    operator.validates(Shop)(lambda shop, request: None)
    operator.defaults(Shop)(lambda shop, request: None)
    options = RunOptions((town.namespace,), webhooks=WebhookOptions(port=0), registers_webhooks=True)
    transport = HeldTransport(town.cluster.new_transport())

    running = asyncio.create_task(operator.run(Client(transport), options))
    async with asyncio.timeout(30):
        await transport.is_asked.wait()
    assert await town.client.get(DEFAULTING, ObjectKey("", "shops"))
    await cancel_again(running, 4)
    with pytest.raises(asyncio.CancelledError):
        await running

    with pytest.raises(NotFoundError):
        await town.client.get(DEFAULTING, ObjectKey("", "shops"))


async def test_a_flood_of_one_kind_does_not_delay_another(town: OperatorHarness) -> None:
    await town.cluster.install(crd_manifest(LooseShop))
    operator = Operator("shops")
    greeted: list[str] = []

    @operator.reconciles(Shop, workers=2)
    async def slowly(shop: Shop, ctx: OwnerContext) -> None:
        await ctx.clock.sleep(30.0)

    @operator.reconciles(LooseShop)
    async def at_once(shop: LooseShop, ctx: OwnerContext) -> None:
        greeted.append(shop.metadata.name)

    async with town.running_operator(operator):
        for number in range(20):
            await town.create_shop(f"shop-{number}")
        loose = {"apiVersion": LOOSE_SHOP.api_version, "kind": "LooseShop", "spec": {}}
        await town.client.create(loose | {"metadata": {"name": "quick", "namespace": town.namespace}})

        await town.cluster.eventually(lambda: greeted == ["quick"], timeout_seconds=5.0)


@pytest.mark.real_time
async def test_a_process_that_ends_leaves_the_webhooks_that_lead_to_another(town: OperatorHarness) -> None:
    options = RunOptions((town.namespace,), webhooks=WebhookOptions(port=0), registers_webhooks=True)
    operator = an_operator()
    operator.validates(Shop)(lambda shop, request: ["never"] if shop.spec.greeting == "rude" else [])

    async def is_refused() -> bool:
        try:
            await town.create_shop("rude", greeting="rude")
        except (InvalidError, ServerError) as error:
            return "never" in str(error)
        await town.client.delete(SHOP, town.key("rude"))
        return False

    async def url() -> str:
        found = await town.client.get(CONFIGURATION, ObjectKey("", "shops"))
        return str(found["webhooks"][0]["clientConfig"]["url"])

    async with AsyncExitStack() as second:
        async with town.running_operator(operator, options):
            await town.cluster.eventually(is_refused, describe="the first one is asked")
            first = await url()
            await second.enter_async_context(town.running_operator(operator, options))

            async def has_changed() -> bool:
                return await url() != first

            await town.cluster.eventually(has_changed, describe="the second one is registered")

        await town.cluster.eventually(is_refused, describe="the second one is still asked")


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_handler_that_never_returns_refuses_its_request_and_no_other(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    operator = an_operator()

    @operator.validates(Shop)
    def endless(shop: Shop, request: AdmissionRequest[Shop]) -> None:
        while shop.spec.greeting == "endless":
            pass

    options = RunOptions(
        (town.namespace,),
        function_limit=timedelta(milliseconds=300),
        webhooks=WebhookOptions(port=0),
        registers_webhooks=True,
    )

    async def is_refused() -> bool:
        try:
            await town.create_shop("corner", greeting="endless")
        except ServerError as error:
            return "endless did not return in time; the operator's log has its position" in str(error)
        await town.client.delete(SHOP, town.key("corner"))
        return False

    async with town.running_operator(operator, options):
        await town.cluster.eventually(is_refused, describe="the request is refused")
        await town.create_shop("market")
        await town.wait_until_ready("market")

    assert any("it was in endless (test_run_options.py, line " in message for message in caplog.messages)


def endless(*arguments: object) -> Any:
    while arguments:
        pass


def list_endlessly(change: Change) -> Iterator[ObjectKey]:
    yield ObjectKey(change.key.namespace, "corner")
    endless(change)


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.parametrize("role", ["is_needed", "predicate", "predicate of a watch", "mapping", "index"])
async def test_a_function_that_never_returns_stops_no_other_owner(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture, role: str
) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, when=endless if role == "predicate" else None)
    if role == "is_needed":

        @operator.finalizes(Shop, is_needed=lambda shop: bool(endless(shop)) or True)
        async def withdraw(shop: Shop, ctx: OwnerContext) -> None: ...

    operator.watches("v1/ConfigMap", requeues=Shop, when=endless if role == "predicate of a watch" else None)(
        list_endlessly if role == "mapping" else lambda change: []
    )
    if role == "index":
        operator.index("v1/ConfigMap", "names")(endless)

    options = RunOptions((town.namespace,), function_limit=timedelta(milliseconds=300))
    async with town.running_operator(operator, options):
        await town.create_shop("corner")
        if role == "is_needed":
            await town.cluster.eventually(lambda: "did not return within" in caplog.text, describe="it is logged")
        else:
            await town.wait_until_ready("corner")

    assert "it was in endless (test_run_options.py, line " in caplog.text


@pytest.mark.slow
@pytest.mark.real_time
async def test_what_blocks_the_event_loop_is_named_while_it_does(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("shops")
    probes = find_free_address()
    answers: list[str] = []

    def is_named() -> bool:
        return any("the event loop has been blocked" in message for message in caplog.messages)

    def ask_liveness() -> str:
        try:
            with urllib.request.urlopen(f"http://{probes}/livez", timeout=0.5) as answer:
                return str(answer.status)
        except TimeoutError:
            return "no answer"

    @operator.reconciles(Shop)
    async def blocks(shop: Shop, ctx: OwnerContext) -> None:
        deadline = ctx.clock.monotonic() + 10.0
        while not is_named() and ctx.clock.monotonic() < deadline:
            pass
        asking = threading.Thread(target=lambda: answers.append(ask_liveness()))
        asking.start()
        asking.join()

    options = RunOptions(
        (town.namespace,), function_limit=timedelta(milliseconds=300), observability=ObservabilityOptions("0", probes)
    )
    async with town.running_operator(operator, options):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: answers, describe="the loop was blocked")

        async def is_over() -> bool:
            return any("the event loop runs again after" in message for message in caplog.messages)

        await town.cluster.eventually(is_over, describe="it is told that the loop runs again")
        assert await asyncio.to_thread(ask_liveness) == "200"

    line = next(message for message in caplog.messages if "has been blocked" in message).splitlines()[0]
    assert "test_run_options.py:" in line
    assert f"'reconcile shop {town.namespace}/corner'" in line
    assert answers == ["no answer"]
