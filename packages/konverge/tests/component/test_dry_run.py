"""A dry run predicts and explains the next reconcile and writes nothing; on both clusters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from konverge._internal.primitives.resource_protocol import Convergence, ConvergingStatus
from konverge.client import Client, Response, Transport
from konverge.component import Component, ComponentBuilder
from konverge.dry_run import DryRun, DryRunReport, ResourceReport, dry_run_component
from konverge.errors import ReconcileError
from konverge.feature import BooleanGate
from konverge.guards import UNBLOCKED, blocked
from konverge.kube import Object, ObjectKey
from konverge.options import (
    auxiliary,
    block_on_absence,
    block_on_foreign_controller,
    delete,
    ignore_if_absent,
    orphan_when,
    read_only,
    unowned,
)
from konverge.prerequisites import depends_on
from konverge.primitives import ConfigMap, Data, Deployment, Job, Secret, Service, Static
from tests.component.app import AGENT, APP, CONFIG_MAP, DEPLOYMENT, SECRET, ComponentHarness

pytestmark = pytest.mark.anyio

NewApp = Callable[[str], Awaitable[ComponentHarness]]


def builder(name: str = "frontend") -> ComponentBuilder:
    return ComponentBuilder(name, condition_type="FrontendReady")


async def run_dry(app: ComponentHarness, component: Component) -> DryRunReport:
    return await dry_run_component(component, app.client, await app.owner(), clock=app.cluster.clock)


def resources_by_name(report: DryRunReport) -> dict[str, ResourceReport]:
    """By the name of the object."""
    return {resource.identity.rpartition("/")[2]: resource for resource in report.resources}


def wide(app: ComponentHarness, colour: str = "blue", replicas: int = 1) -> Component:
    """Something of everything."""
    endpoint: Data[str] = Data("endpoint")
    return (
        builder()
        .with_resource(ConfigMap(app.build_config_map("account")), read_only(), ignore_if_absent())
        .with_resource(
            ConfigMap(
                app.build_config_map("settings", colour=colour),
                extract=endpoint.fill_with(lambda live: live["data"]["colour"]),
            )
        )
        .with_resource(Secret(secret(app, "hunter2")), auxiliary())
        .with_resource(Deployment(app.build_deployment(replicas=replicas), requires=endpoint))
        .with_resource(Service(app.build_service()), unowned())
        .with_resource(ConfigMap(app.build_config_map("old")), delete())
        .with_resource(ConfigMap(app.build_config_map("given")), orphan_when(True))
        .with_grace_period(timedelta(minutes=5))
        .build()
    )


def secret(app: ComponentHarness, password: str) -> Object:
    return {"metadata": {"name": "access", "namespace": app.key.namespace}, "stringData": {"password": password}}


def build_gated_off(app: ComponentHarness) -> Component:
    return builder().with_resource(ConfigMap(app.build_config_map())).with_feature_gate(BooleanGate(False)).build()


def build_suspended(app: ComponentHarness) -> Component:
    deployment = Deployment(app.build_deployment(replicas=2))
    return (
        builder()
        .with_resource(deployment)
        .with_resource(ConfigMap(app.build_config_map("plain")))
        .suspend(True)
        .build()
    )


def waiting(app: ComponentHarness) -> Component:
    return (
        builder().with_resource(ConfigMap(app.build_config_map())).with_prerequisite(depends_on("BackendReady")).build()
    )


def build_guarded(app: ComponentHarness) -> Component:
    return (
        builder()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(Service(app.build_service(), guard=lambda _: blocked("waiting for a sign")))
        .with_resource(ConfigMap(app.build_config_map("later")))
        .build()
    )


def failing(app: ComponentHarness) -> Component:
    return (
        builder()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(ConfigMap(app.build_config_map("x" * 300)))
        .build()
    )


def in_a_new_namespace(app: ComponentHarness) -> Component:
    name = f"{app.key.namespace}-r"
    namespace = Static({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, cluster_scoped=True)
    config = {"metadata": {"name": "settings", "namespace": name}, "data": {"colour": "blue"}}
    return builder().with_resource(namespace).with_resource(ConfigMap(config), unowned()).build()


_VERBS = {"create": "patch", "update": "patch", "release": "update", "delete": "delete"}


@pytest.mark.parametrize(
    "make",
    [wide, build_gated_off, build_suspended, waiting, build_guarded, failing, in_a_new_namespace],
    ids=lambda make: make.__name__,
)
@pytest.mark.parametrize("earlier", [None, wide], ids=["first", "after another"])
async def test_a_rehearsal_says_what_the_pass_then_does(
    app: ComponentHarness,
    make: Callable[[ComponentHarness], Component],
    earlier: Callable[[ComponentHarness], Component] | None,
) -> None:
    for name in ("old", "given"):
        await app.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(name)})
    if earlier is not None:
        await app.reconcile_until(
            "Healthy", earlier(app)
        )  # at rest, or the pass would meet other pods than the rehearsal

    report = await run_dry(app, make(app))
    before = len(app.writes())
    with suppress(ReconcileError):
        await app.reconcile(make(app))
    done = [
        (request.verb, request.path.rpartition("/")[2])
        for request in app.writes()[before:]
        if not request.path.endswith("/status") and request.code < 400
    ]

    assert report.after is not None
    condition = await app.condition("FrontendReady")
    assert (report.after.status, report.after.reason, report.after.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )
    assert [(_VERBS[change.action], change.identity.rpartition("/")[2]) for change in report.changes] == done


async def test_a_rehearsal_of_a_settled_component_changes_nothing(app: ComponentHarness) -> None:
    component = (
        builder().with_resource(ConfigMap(app.build_config_map())).with_resource(Secret(secret(app, "hunter2"))).build()
    )
    await app.reconcile(component)

    report = await run_dry(app, component)

    assert report.changes == ()
    assert report.before == report.after
    assert report.next == ("Nothing, until the owner or one of its objects changes.",)


class NotingTransport:
    """Notes the requests that are no reads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.writes: list[tuple[str, str]] = []

    async def request(self, method: str, path: str, *, query: Mapping[str, str] = {}, **rest: Any) -> Response:
        if method != "GET":
            self.writes.append((method, query.get("dryRun", "")))
        return await self._transport.request(method, path, query=query, **rest)

    def stream(self, *args: Any, **rest: Any) -> Any:
        return self._transport.stream(*args, **rest)

    async def close(self) -> None:
        await self._transport.close()


@pytest.mark.parametrize("make", [wide, build_gated_off, build_suspended], ids=lambda make: make.__name__)
async def test_the_server_gets_nothing_but_reads_and_dry_runs(
    app: ComponentHarness, make: Callable[[ComponentHarness], Component]
) -> None:
    await app.reconcile(wide(app))
    transport = NotingTransport(app.cluster.new_transport())
    client = Client(transport, clock=app.cluster.clock)
    changed = make(app) if make is not wide else wide(app, "green", 3)

    report = await dry_run_component(changed, client, await app.owner(), clock=app.cluster.clock)

    assert report.changes
    assert set(transport.writes) <= {("PATCH", "All")}


async def test_the_owner_that_is_given_stays_as_it_is(app: ComponentHarness) -> None:
    owner = await app.owner()
    before = msgspec.json.encode(owner)

    await dry_run_component(wide(app), app.client, owner, clock=app.cluster.clock)

    assert msgspec.json.encode(owner) == before


async def test_components_see_what_earlier_ones_would_have_done(app: ComponentHarness) -> None:
    backend = ComponentBuilder("backend", condition_type="BackendReady").with_resource(
        ConfigMap(app.build_config_map("store"))
    )
    reader = (
        builder()
        .with_prerequisite(depends_on("BackendReady"))
        .with_resource(ConfigMap(app.build_config_map("store")), read_only())
    )
    dry_run = DryRun(app.client, await app.owner(), clock=app.cluster.clock)
    ctx = dry_run.create_context()

    await backend.build().reconcile(ctx)
    await reader.build().reconcile(ctx)

    _, frontend = dry_run.reports
    assert [resource.verdict for resource in frontend.prerequisites] == ["Met"]
    assert resources_by_name(frontend)["store"].outcome == "read"
    assert await app.find(CONFIG_MAP, "store") is None


async def test_components_see_what_earlier_ones_would_have_deleted(app: ComponentHarness) -> None:
    await app.reconcile(builder().with_resource(ConfigMap(app.build_config_map("store"))).build())
    cleaner = ComponentBuilder("cleaner", condition_type="Clean").with_resource(
        ConfigMap(app.build_config_map("store")), delete()
    )
    reader = builder().with_resource(ConfigMap(app.build_config_map("store")), read_only(), block_on_absence())
    dry_run = DryRun(app.client, await app.owner(), clock=app.cluster.clock)
    ctx = dry_run.create_context()

    await cleaner.build().reconcile(ctx)
    await reader.build().reconcile(ctx)

    assert resources_by_name(dry_run.reports[-1])["store"].outcome == "halts"


@pytest.mark.parametrize(("replicas", "operation"), [(1, "None"), (2, "Updated")])
async def test_a_handler_is_told_the_operation_that_the_pass_would_do(
    app: ComponentHarness, replicas: int, operation: str
) -> None:
    def component(replicas: int) -> Component:
        def judge(_live: Object, operation: object) -> Convergence:
            return Convergence(ConvergingStatus.UPDATING, f"operation {operation}")

        return (
            builder()
            .with_resource(Deployment(app.build_deployment(replicas=replicas), converging_status=judge))
            .build()
        )

    await app.reconcile(component(1))

    report = await run_dry(app, component(replicas))

    assert report.after is not None
    assert report.after.message == f"operation {operation}"


# Fields


async def force_fields(app: ComponentHarness, gvk: Any, name: str, manager: str, **fields: Any) -> None:
    """Another writer applies these fields."""
    metadata = {"name": name, "namespace": app.key.namespace}
    obj = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **fields}
    await app.cluster.client.apply(obj, field_manager=manager)


async def test_a_field_that_another_manager_forced_back_is_fought_over(app: ComponentHarness) -> None:
    component = builder().with_resource(Deployment(app.build_deployment(replicas=2))).build()
    await app.reconcile(component)
    await force_fields(app, DEPLOYMENT, "web", "scaler", spec={"replicas": 5})

    report = await run_dry(app, component)

    [contest] = resources_by_name(report)["web"].contests
    [change] = report.changes
    [field] = change.fields
    assert (contest.path, contest.writer.manager, contest.live, contest.wanted) == (".spec.replicas", "scaler", 5, 2)
    assert contest.is_fought_over
    assert (field.path, field.kind, field.before, field.after) == (".spec.replicas", "changed", 5, 2)
    assert [writer.manager for writer in field.taken_from] == ["scaler"]
    assert any(sentence.startswith("scaler writes fields of") for sentence in report.next)


async def test_a_field_that_another_manager_wants_alike_is_shared(app: ComponentHarness) -> None:
    component = builder().with_resource(ConfigMap(app.build_config_map())).build()
    await app.reconcile(component)
    await force_fields(app, CONFIG_MAP, "settings", "painter", data={"colour": "blue"})

    report = await run_dry(app, component)

    [contest] = resources_by_name(report)["settings"].contests
    assert (contest.path, contest.is_fought_over) == (".data.colour", False)
    assert report.changes == ()


async def test_a_field_that_only_changes_hands_is_claimed(app: ComponentHarness) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(colour="blue", size="1")}
    await app.cluster.client.apply(obj, field_manager="painter")

    report = await run_dry(app, builder().with_resource(ConfigMap(app.build_config_map()), unowned()).build())

    [change] = report.changes
    assert [(field.path, field.kind, field.after) for field in change.fields] == [(".data.colour", "claimed", "blue")]
    assert [writer.manager for field in change.fields for writer in field.owners] == ["painter"]


async def test_items_of_a_list_are_told_by_their_keys(app: ComponentHarness) -> None:
    await app.reconcile(builder().with_resource(Deployment(app.build_deployment())).build())
    changed = app.build_deployment(image="konverge.test/app:2")
    changed["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "konverge.test/side:1"})

    report = await run_dry(app, builder().with_resource(Deployment(changed)).build())

    fields = {field.path: field for field in report.changes[0].fields}
    main = '.spec.template.spec.containers[name="main"].image'
    assert (fields[main].kind, fields[main].before) == ("changed", "konverge.test/app:1")
    assert {field.kind for path, field in fields.items() if path != main} == {"added"}
    assert fields[main.replace("main", "side")].after == "konverge.test/side:1"


async def test_what_is_no_longer_wanted_is_removed(app: ComponentHarness) -> None:
    await app.reconcile(builder().with_resource(ConfigMap(app.build_config_map(colour="blue", size="1"))).build())

    report = await run_dry(app, builder().with_resource(ConfigMap(app.build_config_map(colour="blue"))).build())

    [field] = report.changes[0].fields
    assert (field.path, field.kind, field.before, field.after) == (".data.size", "removed", "1", None)
    assert [writer.is_ours for writer in field.owners] == [True]


async def test_no_value_of_a_secret_is_in_a_rehearsal(app: ComponentHarness) -> None:
    await app.reconcile(builder().with_resource(Secret(secret(app, "hunter2"))).build())
    await force_fields(app, SECRET, "access", "thief", data={"password": "c3Rvbg=="})
    other = builder().with_resource(Secret(secret(app, "swordfish"))).build()

    report = await run_dry(app, other)

    text = msgspec.json.encode(report).decode()
    assert [field.path for field in report.changes[0].fields] == [".data.password"]
    assert "(hidden)" in text
    for value in ("hunter2", "swordfish", "aHVudGVyMg==", "c3dvcmRmaXNo", "c3Rvbg=="):
        assert value not in text


async def test_a_value_of_a_secret_is_hidden_wherever_it_was_copied_to(app: ComponentHarness) -> None:
    made = builder().with_resource(Secret(secret(app, "hunter2")))
    copies = app.build_config_map(plain="postgres://me:hunter2@db", encoded="aHVudGVyMg==", colour="blue")

    report = await run_dry(app, made.with_resource(ConfigMap(copies)).build())

    text = msgspec.json.encode(report).decode()
    assert "hunter2" not in text
    assert "aHVudGVyMg==" not in text
    values = {field.path: field.after for field in report.changes[1].fields}
    assert values[".data.colour"] == "blue"
    assert values[".data.plain"] == values[".data.encoded"] == "(hidden)"


async def test_a_long_value_is_shortened(app: ComponentHarness) -> None:
    report = await run_dry(app, builder().with_resource(ConfigMap(app.build_config_map(text="x" * 10_000))).build())

    [value] = [field.after for field in report.changes[0].fields if field.path == ".data.text"]
    assert value.endswith("x… (10000 characters)")
    assert len(value) < 2_100


# The explanation


async def test_grace_is_told_before_it_is_over_and_after(app: ComponentHarness) -> None:
    broken = app.build_deployment(image="konverge.test/never-ready:1")
    component = builder().with_resource(Deployment(broken)).with_grace_period(timedelta(seconds=2)).build()
    await app.reconcile_until("Creating", component)

    early = await run_dry(app, component)
    assert early.before is not None
    await app.reconcile_until("Down", component)
    late = await run_dry(app, component)

    grace = resources_by_name(early)["web"].grace
    assert early.before.since is not None
    assert grace is not None
    assert (grace.status, grace.reason) == ("Down", "No replicas are ready")
    assert early.grace_ends == early.before.since + timedelta(seconds=2)
    assert any("Its grace period of 2 s ends at" in sentence for sentence in early.next)
    assert late.after is not None
    assert late.after.reason == "Down"
    assert late.rule.startswith("Down (priority 19): its grace period ended at ")
    assert "The component recovers when it is ready." in late.next


async def test_a_blocked_guard_is_told_with_what_waits_behind_it(app: ComponentHarness) -> None:
    report = await run_dry(app, build_guarded(app))

    assert [resource.outcome for resource in report.resources] == ["applied", "halts", "not reached"]
    web = resources_by_name(report)["web"]
    assert web.guard is not None
    assert (web.guard.status, web.guard.reason) == ("Blocked", "waiting for a sign")
    assert report.rule.startswith("Blocked (priority 10)")
    assert any("Waiting for it: v1/ConfigMap/" in sentence for sentence in report.next)


async def test_prerequisites_are_told_one_by_one(app: ComponentHarness) -> None:
    component = (
        builder()
        .with_prerequisite(depends_on("BackendReady"))
        .with_prerequisite(depends_on("CacheReady"))
        .with_resource(ConfigMap(app.build_config_map()))
        .build()
    )

    report = await run_dry(app, component)

    assert [(resource.name, resource.verdict) for resource in report.prerequisites] == [
        ("depends on BackendReady", "NotMet"),
        ("depends on CacheReady", "not asked"),
    ]
    assert resources_by_name(report)["settings"].outcome == "not reached"


async def test_prerequisites_of_a_component_that_has_begun_are_passed(app: ComponentHarness) -> None:
    await app.reconcile(builder().with_resource(ConfigMap(app.build_config_map())).build())

    report = await run_dry(app, waiting(app))

    assert [(resource.verdict, resource.reason) for resource in report.prerequisites] == [
        ("passed", "the component has begun: it was Healthy")
    ]


async def test_an_object_of_another_owner_that_blocks(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(builder().with_resource(ConfigMap(one.build_config_map())).build())

    report = await run_dry(
        two, builder().with_resource(ConfigMap(two.build_config_map()), block_on_foreign_controller()).build()
    )

    assert resources_by_name(report)["settings"].reason == "controlled by TestApp one"


async def test_suspension_is_told_by_resource(app: ComponentHarness) -> None:
    report = await run_dry(app, build_suspended(app))

    web, plain = resources_by_name(report)["web"], resources_by_name(report)["plain"]
    assert (web.outcome, plain.outcome) == ("suspended", "left alone")
    assert web.suspension is not None
    assert report.is_suspended
    assert [field.after for field in report.changes[0].fields if field.path == ".spec.replicas"] == [0]


async def test_an_object_that_is_made_anew_is_deleted_first(app: ComponentHarness) -> None:
    job = {
        "metadata": {"name": "migrate", "namespace": app.key.namespace},
        "spec": {
            "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "konverge.test/app:1"}]}
            }
        },
    }
    await app.reconcile(builder().with_resource(Job(job, recreate=True)).build())
    job["spec"]["template"]["spec"]["containers"][0]["image"] = "konverge.test/app:2"  # type: ignore[index]

    report = await run_dry(app, builder().with_resource(Job(job, recreate=True)).build())

    assert [change.action for change in report.changes] == ["delete"]
    assert resources_by_name(report)["migrate"].outcome == "halts"
    assert "is created again" in resources_by_name(report)["migrate"].reason


async def test_a_function_that_fails_is_named_and_the_rest_not_reached(app: ComponentHarness) -> None:
    def explode(_: Object) -> Any:
        raise ValueError("boom")

    component = (
        builder()
        .with_resource(ConfigMap(app.build_config_map(), guard=lambda _: UNBLOCKED))
        .with_resource(ConfigMap(app.build_config_map("bad"), guard=explode))
        .with_resource(ConfigMap(app.build_config_map("later")))
        .with_grace_period(timedelta(minutes=1))
        .build()
    )

    report = await run_dry(app, component)

    assert [resource.outcome for resource in report.resources] == ["applied", "failed", "not reached"]
    assert "ValueError: boom" in report.error
    assert report.after is not None
    assert report.after.reason == "Error"
    assert report.wakes_at is None


async def test_an_absent_object_that_blocks_says_when_it_goes_on(app: ComponentHarness) -> None:
    report = await run_dry(
        app,
        builder().with_resource(ConfigMap(app.build_config_map("account")), read_only(), block_on_absence()).build(),
    )

    account = resources_by_name(report)["account"]
    assert (account.outcome, account.exists) == ("halts", False)
    assert f"The component continues as soon as {account.identity} exists." in report.next


def deciding(resource: ResourceReport) -> Iterator[tuple[str, Any]]:
    assert resource.convergence is not None
    return ((reading.path, reading.value) for reading in resource.convergence.decided_by)


async def test_the_fields_that_an_authors_own_function_read_are_told(app: ComponentHarness) -> None:
    def judge(live: Object, _operation: object) -> Any:
        names = [item["name"] for item in live["spec"]["template"]["spec"]["containers"]]
        ready = live.get("status", {}).get("readyReplicas", 0)
        return Convergence(ConvergingStatus.UPDATING, f"{len(names)} containers, {ready} ready")

    component = builder().with_resource(Deployment(app.build_deployment(), converging_status=judge)).build()

    report = await run_dry(app, component)

    assert list(deciding(resources_by_name(report)["web"])) == [
        ("spec.template.spec.containers", "[main]"),
        ("status.readyReplicas", None),
    ]


async def test_a_rehearsal_is_json_of_camel_case(app: ComponentHarness) -> None:
    found = msgspec.to_builtins(await run_dry(app, wide(app)))

    assert found["conditionType"] == "FrontendReady"
    assert {"isAuxiliary", "decidedBy"} <= {*found["resources"][0], *found["resources"][3]["convergence"]}


async def test_the_rehearsal_leaves_no_trace_of_the_owner(app: ComponentHarness) -> None:
    before = await app.client.get(APP, ObjectKey(app.key.namespace, "shop"))

    await run_dry(app, wide(app))

    assert await app.client.get(APP, ObjectKey(app.key.namespace, "shop")) == before
    assert {request.verb for request in app.cluster.list_requests(AGENT)} == {"get", "patch"}


async def test_a_condition_that_is_behind_the_cluster_is_news(app: ComponentHarness) -> None:
    component = builder().with_resource(Deployment(app.build_deployment())).build()
    first = await app.reconcile(component)

    async def ready() -> bool:
        found = await app.find(DEPLOYMENT, "web")
        return found is not None and found.get("status", {}).get("readyReplicas") == 1

    await app.cluster.eventually(ready)

    report = await run_dry(app, component)

    assert first.reason == "Creating"
    assert report.next == (
        "The next reconcile reports Healthy. If a running operator does not, its log has the reason.",
    )
