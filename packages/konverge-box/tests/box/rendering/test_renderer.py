"""The rendering of a custom resource, without a cluster."""

import base64
from typing import Any

import msgspec
import pytest
import yaml

from konverge.errors import ConfigurationError
from konverge_box._internal.calls.scripted_answers import ScriptedAnswer
from konverge_box._internal.file import CUSTOM, KINDS, load_box
from konverge_box._internal.rendering import RenderedStep, Rendering, render_box
from konverge_box.providers import ProviderPool, ProviderRegistry
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider
from tests.box.running.box_harness import GROUP, build_box, build_box_text, build_config_map, build_custom_resource

pytestmark = pytest.mark.anyio

RBAC = "rbac.authorization.k8s.io"
SECRET_TEXT = "open sesame"
RANDOM = "{{ randomAlphanumeric(20) }}"


def shelf(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Shelf", "metadata": {"name": "top"}, "spec": spec}


async def render_steps(steps: dict[str, Any], spec: dict[str, Any] | None = None, **more: Any) -> Rendering:
    return await render_box(build_box(shelf=build_custom_resource("Shelf", **steps)), shelf(**(spec or {})), **more)


def step(rendering: Rendering, name: str) -> RenderedStep:
    return next(each for each in rendering.steps if each.step == name)


def secret(name: str, **data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


async def test_each_step_shows_what_it_has_changed() -> None:
    found = await render_steps(
        {
            "normalize": {"spec": {"owner": "{{ spec.owner | toLower }}"}},
            "mutation": [{"field": "spec.size", "default": 3}],
            "onReconcile": {"configMaps": [build_config_map(a="{{ spec.owner }}-{{ spec.size }}")]},
            "status": {"fields": [{"path": "owner", "value": "{{ spec.owner }}"}]},
        },
        {"owner": "ADA"},
    )

    (change,) = step(found, "normalize").changes
    assert (change.path, change.before, change.after) == ("spec.owner", "ADA", "ada")
    assert [each.path for each in step(found, "mutation").changes] == ["spec.size"]
    ((made,),) = [group.objects for group in step(found, "onReconcile").groups]
    assert (made.object, made.decision) == ("v1/ConfigMap/default/top", "apply")
    assert made.manifest is not None
    assert made.manifest["data"] == {"a": "ada-3"}
    assert step(found, "status").values == {"owner": "ada"}
    assert found.result == "ok"


async def test_all_violations_are_shown_and_nothing_is_made() -> None:
    rules = [{"field": "spec.a", "message": "no a"}, {"field": "spec.b", "message": "no b", "action": "warn"}]
    found = await render_steps({"validation": rules, "onReconcile": {"configMaps": [build_config_map()]}})

    assert step(found, "validation").denied == ("spec.a: no a",)
    assert step(found, "validation").warned == ("spec.b: no b",)
    assert "onReconcile" not in [each.step for each in found.steps]
    assert found.result == "denied"


async def test_an_error_says_its_step_and_path_and_leaves_what_came_before() -> None:
    found = await render_steps(
        {
            "mutation": [{"field": "spec.size", "default": 3}],
            "cross": [
                {"apiVersion": "v1", "kind": "ConfigMap", "as": "seen", "selector": {"name": "{{ spec.no.such }}"}}
            ],
            "onReconcile": {"configMaps": [build_config_map()]},
        }
    )

    assert found.result == "failed"
    assert step(found, "cross").error.startswith("spec.crds.shelf.cross[0].selector.name")
    assert step(found, "mutation").changes
    assert "onReconcile" not in [each.step for each in found.steps]


async def test_what_the_schema_refuses_is_the_error_of_the_object() -> None:
    schema = {"spec": {"required": ["size"], "properties": {"size": {"type": "integer"}}}}
    box = build_box(shelf={"resource": {"apiVersion": f"{GROUP}/v1", "kind": "Shelf", "schema": schema}})

    found = await render_box(box, shelf(size="big"))

    (only,) = found.steps
    assert only.step == "object"
    assert "spec.size" in only.error


async def test_given_objects_are_observed_and_secrets_are_masked() -> None:
    found = await render_steps(
        {
            "cross": [
                {"apiVersion": "v1", "kind": "Secret", "as": "login", "selector": {"name": "login"}},
                {"apiVersion": "db.example.com/v1", "kind": "Database", "as": "db", "selector": {"name": "main"}},
            ],
            "onCreate": {"secrets": [{"name": "key", "once": True, "stringData": {"key": RANDOM}}]},
            "onReconcile": {
                "secrets": [
                    {"name": "dsn", "stringData": {"dsn": "{{ cross.login.data.password }}@{{ cross.db.status.host }}"}}
                ],
                "custom": [{"apiVersion": "db.example.com/v1", "kind": "Grant", "manifest": {"spec": {"to": "x"}}}],
            },
        },
        given=[
            secret("login", password=SECRET_TEXT),
            {
                "apiVersion": "db.example.com/v1",
                "kind": "Database",
                "metadata": {"name": "main", "namespace": "default"},
                "status": {"host": "db.internal"},
            },
        ],
    )

    text = msgspec.json.encode(found).decode()
    assert found.result == "ok", text
    values = step(found, "cross").values or {}
    assert values["login"]["data"] == {"password": "***"}
    assert values["db"]["status"] == {"host": "db.internal"}
    assert SECRET_TEXT not in text
    assert base64.b64encode(SECRET_TEXT.encode()).decode() not in text
    assert "Grant/default/top" in text


async def test_calls_without_an_answer_are_not_made() -> None:
    calls = [
        {"name": "config", "url": "https://example.com/{{ spec.a }}"},
        {"name": "second", "url": "https://example.org/", "auth": {"secretRef": {"name": "t", "key": "t"}}},
        {"name": "off", "url": "https://example.org/", "when": [{"field": "spec.off", "exists": True}]},
    ]
    data = build_config_map(a="{{ external.config.json.color | default('none') }}", b="{{ external.second.called }}")
    found = await render_steps(
        {"external": calls, "onReconcile": {"configMaps": [data]}},
        {"a": "b"},
        answers={"config": ScriptedAnswer(json={"color": "red"})},
    )

    assert step(found, "external").calls == {
        "config": "answered: GET https://example.com",
        "second": "not called: GET https://example.org",
        "off": "not sent: its conditions do not hold",
    }
    ((made,),) = [group.objects for group in step(found, "onReconcile").groups]
    assert made.manifest is not None
    assert made.manifest["data"] == {"a": "red", "b": "false"}


async def test_an_answer_counts_as_that_of_a_server() -> None:
    found = await render_steps(
        {"external": [{"name": "config", "url": "https://example.com/"}]},
        answers={"config": ScriptedAnswer(status=503)},
    )

    assert found.result == "failed"
    assert "expected status below 400, found 503" in step(found, "external").error


async def test_equal_input_gives_equal_output() -> None:
    steps = {
        "onCreate": {"secrets": [{"name": "key", "once": True, "stringData": {"key": RANDOM}}]},
        "onReconcile": {"configMaps": [build_config_map(at="{{ metadata.uid }}")]},
    }

    assert await render_steps(steps) == await render_steps(steps)


async def test_items_of_providers_are_shown_and_not_made() -> None:
    pytest.importorskip("psycopg")
    providers = {"postgres": [{"kind": "Database", "name": "{{ metadata.name }}-db"}]}
    box = yaml.safe_load(build_box_text(shelf=build_custom_resource("Shelf", providers=providers)))
    box["spec"]["providers"] = {
        "postgres": {"settings": {"host": "db.example.com", "user": "admin", "password": SECRET_TEXT}}
    }

    found = await render_box(load_box(yaml.safe_dump(box)), shelf())

    (item,) = step(found, "providers").items
    assert (item.provider, item.kind, item.name) == ("postgres", "Database", "top-db")
    assert SECRET_TEXT not in str(found)


async def test_another_kind_than_those_of_the_box_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="found apps/v1/Deployment"):
        await render_box(
            build_box(shelf=build_custom_resource("Shelf")),
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}},
        )


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != CUSTOM])
async def test_each_kind_of_a_box_is_rendered(kind: str) -> None:
    bodies: dict[str, Any] = {
        "services": {"port": 80},
        "cronJobs": {"schedule": "@daily"},
        "persistentVolumeClaims": {"storage": "1Gi"},
        "horizontalPodAutoscalers": {"maxReplicas": 1},
        "ingresses": {"host": "example.com"},
        "roleBindings": {"manifest": {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "x"}}},
        "clusterRoleBindings": {"manifest": {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "x"}}},
        "customResourceDefinitions": {
            "manifest": {
                "spec": {
                    "group": "example.com",
                    "scope": "Cluster",
                    "names": {"kind": "Made", "plural": "mades"},
                    "versions": [],
                }
            }
        },
    }
    body = {"image": "nginx"} if KINDS[kind].pods is not None else {}
    declared = {kind: [{"name": "made", **body, **bodies.get(kind, {})}]}

    found = await render_steps({"onReconcile": declared})

    ((made,),) = [group.objects for group in step(found, "onReconcile").groups]
    assert (made.problem, made.decision) == ("", "apply")


async def test_a_kind_of_the_core_group_that_kubernetes_lacks_fails_alone() -> None:
    unknown = {"apiVersion": "v1", "kind": "Wardrobe", "name": "made"}

    found = await render_steps({"onReconcile": {"custom": [unknown]}})

    assert found.result == "failed"
    assert "v1/Wardrobe" in str(found.steps)


async def test_a_later_group_shows_the_values_of_an_earlier_one() -> None:
    found = await render_steps(
        {
            "onReconcile": [
                {"name": "first", "configMaps": [build_config_map("source", a="{{ spec.a }}")]},
                {"name": "second", "configMaps": [build_config_map("copy", a="{{ children.configMap.data.a }}!")]},
                {"name": "third", "configMaps": [build_config_map("none", a="{{ children.configMap.data.b }}")]},
            ],
        },
        {"a": "1"},
    )

    first, second, third = (group.objects[0] for group in step(found, "onReconcile").groups)
    assert first.manifest is not None
    assert second.manifest is not None
    assert second.manifest["data"] == {"a": "1!"}
    assert (third.manifest, third.blocked) == (None, "waiting for children.configMap.data.b")


async def test_a_group_that_reads_providers_is_shown_as_blocked_because_none_is_called() -> None:
    box = build_box_text(
        shelf=build_custom_resource(
            "Shelf",
            providers={"cloud": [{"kind": "Machine", "name": "m"}]},
            onReconcile=[
                {"name": "first", "configMaps": [build_config_map("a", a="b")]},
                {"name": "late", "configMaps": [build_config_map("b", id="{{ providers.cloud.m.outputs.id }}")]},
            ],
        )
    ).replace("spec:\n", "spec:\n  providers: {cloud: {}}\n", 1)
    cloud = FakeCloudProvider(FakeCloud())
    pool = ProviderPool(ProviderRegistry.from_providers([cloud]))

    found = await render_box(load_box(box), shelf(), pool=pool)

    assert [group.name for group in step(found, "onReconcile").groups] == ["first"]
    ((late,),) = [group.objects for group in step(found, "laterGroups").groups]
    assert late.blocked == "waiting for providers, which have no results in this reconcile"
    assert cloud.calls == []


async def test_a_paused_object_has_no_steps() -> None:
    found = await render_steps(
        {"pause": [{"field": "spec.paused", "equals": True}], "onReconcile": {"configMaps": [build_config_map()]}},
        {"paused": True},
    )

    assert [each.step for each in found.steps] == ["object"]
    assert [each["reason"] for each in found.conditions] == ["PausedByField"]
