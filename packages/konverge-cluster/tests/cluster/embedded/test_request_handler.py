from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.clock import SeededEntropy, SimulatedClock
from konverge.kube import Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.audit_log import AuditEntry, AuditLog
from konverge_cluster._internal.embedded.messages import ServerResponse
from konverge_cluster._internal.embedded.request_bodies import MAXIMUM_BYTES
from konverge_cluster._internal.embedded.request_handler import RequestHandler
from konverge_cluster._internal.embedded.verbs import ServerVerbs
from tests.cluster.embedded.conftest import ManualClock
from tests.cluster.embedded.objects import config_map, deployment, pod, webapp
from tests.cluster.embedded.request_client import (
    APPLY,
    JSON_PATCH,
    MERGE,
    METADATA,
    ONE_METADATA,
    STRATEGIC,
    TABLE,
    RequestClient,
    read_all_events,
    read_next_events,
)

pytestmark = pytest.mark.anyio

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
WEBAPPS = "/apis/demo.konverge.dev/v1/namespaces/default/webapps"


def test_an_object_goes_through_its_life(ask: RequestClient) -> None:
    created = ask("POST", CONFIG_MAPS, config_map(a="1"))
    read = ask("GET", f"{CONFIG_MAPS}/settings")
    replaced = ask("PUT", f"{CONFIG_MAPS}/settings", {**read.body, "data": {"a": "2"}})
    deleted = ask("DELETE", f"{CONFIG_MAPS}/settings")

    assert (created.status, read.status, replaced.status, deleted.status) == (201, 200, 200, 200)
    assert read.body == created.body
    assert replaced.body["data"] == {"a": "2"}
    assert (deleted.body["kind"], deleted.body["status"]) == ("Status", "Success")
    assert deleted.body["details"] == {
        "name": "settings",
        "kind": "configmaps",
        "uid": created.body["metadata"]["uid"],
    }
    assert ask("GET", f"{CONFIG_MAPS}/settings").status == 404


def test_the_path_fills_in_what_the_body_leaves_out(ask: RequestClient) -> None:
    created = ask("POST", CONFIG_MAPS, {"metadata": {"name": "bare"}})

    assert created.body["metadata"]["namespace"] == "default"
    assert (created.body["kind"], created.body["apiVersion"]) == ("ConfigMap", "v1")


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        (
            "POST",
            CONFIG_MAPS,
            {"metadata": {"name": "x", "namespace": "other"}},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "PUT",
            f"{CONFIG_MAPS}/one",
            {"metadata": {"name": "two"}},
            "the name of the object (two) does not match the name on the URL (one)",
        ),
        (
            "PUT",
            f"{CONFIG_MAPS}/one",
            {},
            "the name of the object (one based on URL) was undeterminable: name must be provided",
        ),
        (
            "POST",
            CONFIG_MAPS,
            {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "x"}},
            "the API version in the data (v2) does not match the expected API version (v1)",
        ),
        (
            "POST",
            CONFIG_MAPS,
            b'{"metadata":',
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; "
            "json parse error: unexpected end of JSON input",
        ),
        (
            "POST",
            CONFIG_MAPS,
            [1],
            "the object provided is unrecognized (must be of type ConfigMap): expected a mapping",
        ),
        ("GET", f"{CONFIG_MAPS}?limit=many", None, 'strconv.ParseInt: parsing "many": invalid syntax'),
        (
            "GET",
            f"{CONFIG_MAPS}?labelSelector=a%3D%3D%3D",
            None,
            "unable to parse requirement: found '=', expected: identifier",
        ),
        (
            "GET",
            f"{CONFIG_MAPS}?resourceVersion=new",
            None,
            'invalid resource version: resourceVersion: Invalid value: "new": strconv.ParseUint: parsing "new": '
            "invalid syntax",
        ),
        ("GET", f"{PODS}?fieldSelector=spec.mood%3Dgood", None, "field label not supported: spec.mood"),
    ],
)
def test_what_makes_no_sense_is_a_bad_request(
    ask: RequestClient, method: str, path: str, body: Any, message: str
) -> None:
    answer = ask(method, path, body)

    assert (answer.status, answer.body["reason"], answer.body["message"]) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/api/v1/namespaces/default/foos", 404, "NotFound"),
        ("GET", "/apis/example.com/v1/foos", 404, "NotFound"),
        ("GET", f"{PODS}/web/stomach", 404, "NotFound"),
        ("GET", "/somewhere/else", 404, "NotFound"),
        ("GET", "/api/v1/namespaces//configmaps", 404, "NotFound"),
        ("POST", f"{CONFIG_MAPS}/settings", 405, "MethodNotAllowed"),
        ("PUT", CONFIG_MAPS, 405, "MethodNotAllowed"),
        ("POST", "/api/v1/configmaps", 405, "MethodNotAllowed"),
        ("DELETE", "/api/v1/namespaces", 405, "MethodNotAllowed"),
        ("PUT", "/version", 405, "MethodNotAllowed"),
    ],
)
def test_what_is_not_there_is_a_status(ask: RequestClient, method: str, path: str, status: int, reason: str) -> None:
    answer = ask(method, path, {})

    assert (answer.status, answer.body["kind"], answer.body["reason"]) == (status, "Status", reason)


@pytest.mark.parametrize("query", ["limit=", "limit=-", "resourceVersion=", "watch=1&timeoutSeconds="])
def test_a_number_of_thousands_of_digits_is_out_of_range(ask: RequestClient, query: str) -> None:
    answer = ask("GET", f"{CONFIG_MAPS}?{query}{'9' * 5000}")

    assert answer.status == 400
    assert answer.body["message"].endswith("value out of range")


def test_warnings_are_bounded_however_many_fields_are_unknown(ask: RequestClient) -> None:
    unknown = {f"{number}{'x' * 300}": 1 for number in range(10_000)}

    answer = ask("POST", CONFIG_MAPS, config_map() | unknown)
    strict = ask("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", config_map() | unknown)
    headers = ServerResponse(200, b"", warnings=answer.warnings).format_warning_headers()
    assert len(headers) > 1
    assert sum(map(len, headers)) < 8_000
    assert strict.body["message"].count("unknown field") == 100


@pytest.mark.parametrize(
    ("method", "path", "content_type", "body"),
    [
        ("PATCH", f"{CONFIG_MAPS}/one?fieldManager=m", APPLY, {"apiVersion": "v1", "kind": "ConfigMap"}),
        ("PATCH", "/api/v1/nodes/one?fieldManager=m", APPLY, {"apiVersion": "v1", "kind": "Node"}),
        ("POST", WEBAPPS, "application/json", {"apiVersion": "demo.konverge.dev/v1", "kind": "Other"}),
        ("POST", f"{PODS}/web/binding", "application/json", {"target": []}),
        ("POST", f"{PODS}/web/eviction", "application/json", {"deleteOptions": "now"}),
        ("PUT", f"{DEPLOYMENTS}/web/scale", "application/json", {"spec": {"replicas": 1}}),
        ("PATCH", f"{DEPLOYMENTS}/web/scale", MERGE, {}),
    ],
)
@pytest.mark.parametrize("metadata", ["text", [1], 5, {"namespace": [1], "name": {}}])
def test_metadata_of_the_wrong_type_is_the_sender_s_mistake(
    ask: RequestClient, webapps: Object, method: str, path: str, content_type: str, body: Object, metadata: Any
) -> None:
    ask("POST", PODS, pod())
    ask("POST", DEPLOYMENTS, deployment())

    answer = ask(method, path, {**body, "metadata": metadata}, content_type=content_type)
    assert "an error on the server" not in answer.body.get("message", "")


def test_yaml_is_read_like_json(ask: RequestClient) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {since: 2026-01-01, on: 'yes'}\n"

    created = ask("POST", CONFIG_MAPS, text, content_type="application/yaml")
    broken = ask("POST", CONFIG_MAPS, b"a: [", content_type="application/yaml")

    assert (created.status, created.body["data"]["since"]) == (201, "2026-01-01")
    assert (broken.status, broken.body["reason"]) == (400, "BadRequest")


def test_other_forms_of_body_are_refused(ask: RequestClient) -> None:
    answer = ask("POST", CONFIG_MAPS, b"x", content_type="text/plain")

    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")


def test_a_body_is_bounded_in_size_and_depth(ask: RequestClient) -> None:
    large = ask("POST", CONFIG_MAPS, b"x" * (MAXIMUM_BYTES + 1))
    deep = ask("POST", CONFIG_MAPS, b'{"a":' * 5000 + b"1" + b"}" * 5000)
    nested = ask("POST", CONFIG_MAPS, b'{"a":' + b"[" * 150 + b"]" * 150 + b"}")

    assert (large.status, large.body["message"]) == (413, "Request entity too large: limit is 3145728")
    assert (deep.status, nested.status) == (400, 400)
    assert "nests deeper than" in nested.body["message"]


def test_unknown_and_doubled_fields_are_warned_of_unless_the_request_says_otherwise(ask: RequestClient) -> None:
    body = b'{"metadata":{"name":"x"},"data":{"a":"1","a":"2"},"colour":"red"}'

    warned = ask("POST", f"{CONFIG_MAPS}?dryRun=All", body)
    ignored = ask("POST", f"{CONFIG_MAPS}?dryRun=All&fieldValidation=Ignore", body)
    refused = ask("POST", f"{CONFIG_MAPS}?dryRun=All&fieldValidation=Strict", body)

    assert warned.warnings == ('unknown field "colour"', 'duplicate field "data.a"')
    assert warned.body["data"] == {"a": "2"}
    assert ignored.warnings == ()
    assert (refused.status, refused.body["message"]) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "colour", '
        'duplicate field "data.a"',
    )


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("fieldValidation=Sometimes", "fieldValidation"),
        ("dryRun=Some", "dryRun"),
        (f"fieldManager={'m' * 129}", "fieldManager"),
        ("force=true", "force"),
    ],
)
def test_options_are_held_to_their_rules(ask: RequestClient, query: str, field: str) -> None:
    answer = ask("PATCH", f"{CONFIG_MAPS}/settings?{query}", {}, content_type=MERGE)

    assert answer.status == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [field]


def test_the_field_manager_is_named_or_taken_from_the_user_agent(ask: RequestClient) -> None:
    ask("POST", f"{CONFIG_MAPS}?fieldManager=named", config_map("a", "default", x="1"))
    ask("POST", CONFIG_MAPS, config_map("b", "default", x="1"))

    managers = [
        ask("GET", f"{CONFIG_MAPS}/{name}").body["metadata"]["managedFields"][0]["manager"] for name in ("a", "b")
    ]
    assert managers == ["named", "tester"]


@pytest.mark.parametrize(
    ("content_type", "patch", "expected"),
    [
        (MERGE, {"data": {"a": None, "b": "2"}}, {"b": "2"}),
        (STRATEGIC, {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
        (JSON_PATCH, [{"op": "replace", "path": "/data/a", "value": "9"}], {"a": "9"}),
    ],
)
def test_patches_in_each_form(ask: RequestClient, content_type: str, patch: Any, expected: Object) -> None:
    ask("POST", CONFIG_MAPS, config_map(a="1"))

    patched = ask("PATCH", f"{CONFIG_MAPS}/settings", patch, content_type=content_type)

    assert (patched.status, patched.body["data"]) == (200, expected)


def test_apply_says_whether_it_created(ask: RequestClient) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
    path = f"{CONFIG_MAPS}/settings?fieldManager=me"

    first = ask("PATCH", path, body, content_type=APPLY)
    second = ask("PATCH", path, body, content_type=APPLY)
    text = ask("PATCH", path, b"apiVersion: v1\nkind: ConfigMap\ndata: {a: '2'}\n", content_type=APPLY)

    assert (first.status, second.status, text.status) == (201, 200, 200)
    assert second.body == first.body
    assert text.body["data"] == {"a": "2"}


def test_apply_needs_a_field_manager_and_a_kind(ask: RequestClient) -> None:
    unnamed = ask("PATCH", f"{CONFIG_MAPS}/settings", {"data": {}}, content_type=APPLY)
    unkind = ask("PATCH", f"{CONFIG_MAPS}/settings?fieldManager=me", {"data": {}}, content_type=APPLY)

    assert "fieldManager: Required value: is required for apply patch" in unnamed.body["message"]
    assert (unkind.status, unkind.body["message"]) == (400, "invalid object type: /, Kind=")


def test_custom_resources_know_no_strategic_merge(ask: RequestClient, webapps: Object) -> None:
    ask("POST", WEBAPPS, webapp())

    answer = ask("PATCH", f"{WEBAPPS}/shop", {}, content_type=STRATEGIC)

    assert answer.status == 415


def test_a_custom_resource_has_to_say_what_it_is(ask: RequestClient, webapps: Object) -> None:
    answer = ask("POST", WEBAPPS, {"metadata": {"name": "shop"}, "spec": {"image": "shop:1"}})

    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


def test_lists_of_built_in_kinds_say_the_kind_once(ask: RequestClient, webapps: Object) -> None:
    ask("POST", CONFIG_MAPS, config_map())
    ask("POST", WEBAPPS, webapp())

    built_in, custom = ask("GET", CONFIG_MAPS).body, ask("GET", WEBAPPS).body

    assert (built_in["kind"], custom["kind"]) == ("ConfigMapList", "WebAppList")
    assert set(built_in["items"][0]) == {"metadata"}
    assert custom["items"][0]["kind"] == "WebApp"


def test_a_list_in_pages(ask: RequestClient) -> None:
    for name in "abc":
        ask("POST", CONFIG_MAPS, config_map(name))

    first = ask("GET", f"{CONFIG_MAPS}?limit=2").body
    second = ask("GET", f"{CONFIG_MAPS}?limit=2&continue={first['metadata']['continue']}").body

    assert [item["metadata"]["name"] for item in [*first["items"], *second["items"]]] == ["a", "b", "c"]
    assert first["metadata"]["remainingItemCount"] == 1
    assert "continue" not in second["metadata"]


def test_a_list_at_an_exact_version_shows_the_past(ask: RequestClient) -> None:
    created = ask("POST", CONFIG_MAPS, config_map("a"))
    ask("POST", CONFIG_MAPS, config_map("b"))
    version = created.body["metadata"]["resourceVersion"]

    past = ask("GET", f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact").body
    present = ask("GET", f"{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan").body

    assert [item["metadata"]["name"] for item in past["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in present["items"]] == ["a", "b"]


def test_a_version_of_the_future_times_out(ask: RequestClient) -> None:
    answer = ask("GET", f"{CONFIG_MAPS}?resourceVersion=1000000")

    assert (answer.status, answer.body["reason"], answer.headers["retry-after"]) == (504, "Timeout", "1")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    "query", ["resourceVersionMatch=Exact", "resourceVersion=1&resourceVersionMatch=Never", "sendInitialEvents=true"]
)
def test_list_options_that_do_not_go_together(ask: RequestClient, query: str) -> None:
    assert ask("GET", f"{CONFIG_MAPS}?{query}").status == 422


def test_metadata_alone(ask: RequestClient) -> None:
    ask("POST", CONFIG_MAPS, config_map(a="1"))

    listed = ask("GET", CONFIG_MAPS, headers=METADATA).body
    one = ask("GET", f"{CONFIG_MAPS}/settings", headers=ONE_METADATA).body

    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["items"] == [one]
    assert set(one) == {"kind", "apiVersion", "metadata"}
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "settings")


def test_an_answer_that_nobody_takes_is_not_given(ask: RequestClient) -> None:
    assert ask("GET", CONFIG_MAPS, headers={"accept": "text/html"}).status == 406


def test_a_collection_is_deleted_by_selector(ask: RequestClient) -> None:
    for name, tier in (("a", "web"), ("b", "db"), ("c", "web")):
        body = config_map(name)
        body["metadata"]["labels"] = {"tier": tier}
        ask("POST", CONFIG_MAPS, body)

    deleted = ask("DELETE", f"{CONFIG_MAPS}?labelSelector=tier%3Dweb")

    assert [item["metadata"]["name"] for item in deleted.body["items"]] == ["a", "c"]
    assert [item["metadata"]["name"] for item in ask("GET", CONFIG_MAPS).body["items"]] == ["b"]


def test_the_options_of_a_delete_come_in_the_query_or_the_body(ask: RequestClient) -> None:
    ask("POST", DEPLOYMENTS, deployment())

    guarded = ask("DELETE", f"{DEPLOYMENTS}/web", {"preconditions": {"uid": "another-uid"}})
    foreground = ask("DELETE", f"{DEPLOYMENTS}/web?propagationPolicy=Foreground")
    unknown = ask("DELETE", f"{DEPLOYMENTS}/web", {"propagationPolicy": "Later"})

    assert guarded.status == 409
    assert foreground.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert unknown.status == 422


def test_deleting_a_job_warns_that_its_pods_stay(ask: RequestClient) -> None:
    run = {"restartPolicy": "Never", "containers": [{"name": "app", "image": "konverge.test/app:1"}]}
    ask(
        "POST",
        "/apis/batch/v1/namespaces/default/jobs",
        {"metadata": {"name": "once"}, "spec": {"template": {"spec": run}}},
    )

    deleted = ask("DELETE", "/apis/batch/v1/namespaces/default/jobs/once")

    assert len(deleted.warnings) == 1
    assert deleted.warnings[0].startswith("child pods are preserved by default")


def test_a_pod_is_bound_once_and_evicted_in_order(ask: RequestClient) -> None:
    ask("POST", PODS, pod())
    binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "node-0"}}

    bound = ask("POST", f"{PODS}/web/binding", binding)
    again = ask("POST", f"{PODS}/web/binding", binding)
    evicted = ask("POST", f"{PODS}/web/eviction", {"metadata": {"name": "web"}})

    assert (bound.status, again.status, evicted.status) == (201, 409, 201)
    assert "deletionTimestamp" in ask("GET", f"{PODS}/web").body["metadata"]


def test_a_budget_forbids_an_eviction(ask: RequestClient) -> None:
    body = pod()
    body["metadata"]["labels"] = {"app": "web"}
    ask("POST", PODS, body)
    # Pods that do not run yet count for no budget.
    ask("PATCH", f"{PODS}/web/status", {"status": {"phase": "Running"}}, content_type=MERGE)
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)

    answer = ask("POST", f"{PODS}/web/eviction", {"metadata": {"name": "web"}})

    assert (answer.status, answer.body["reason"]) == (429, "TooManyRequests")
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"


def test_scale_is_read_and_written_by_path(ask: RequestClient) -> None:
    ask("POST", DEPLOYMENTS, deployment(replicas=1))

    ask("PATCH", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 3}}, content_type=MERGE)

    assert ask("GET", f"{DEPLOYMENTS}/web/scale").body["spec"] == {"replicas": 3}
    assert ask("GET", f"{DEPLOYMENTS}/web").body["spec"]["replicas"] == 3


def test_each_request_is_recorded(ask: RequestClient, audit: AuditLog, clock: ManualClock) -> None:
    ask("POST", CONFIG_MAPS, config_map())
    ask("GET", f"{CONFIG_MAPS}?limit=1")
    ask("GET", f"{CONFIG_MAPS}/none")
    ask("GET", "/version")
    ask.stream(f"{CONFIG_MAPS}?watch=1")

    entries = [(entry.verb, entry.path, entry.code) for entry in audit]
    assert entries == [
        ("create", CONFIG_MAPS, 201),
        ("list", CONFIG_MAPS, 200),
        ("get", f"{CONFIG_MAPS}/none", 404),
        ("get", "/version", 200),
        ("watch", CONFIG_MAPS, 200),
    ]
    assert {(entry.user_agent, entry.time) for entry in audit} == {("tester/1.0", clock.now())}


def test_the_record_forgets_the_oldest(clock: ManualClock) -> None:
    audit = AuditLog(limit=2)

    for code in (1, 2, 3):
        audit.record(AuditEntry(clock.now(), "", "get", "/", code))

    assert [entry.code for entry in audit] == [2, 3]


def test_a_mistake_of_the_server_is_an_answer_too(
    ask: RequestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: ServerVerbs, *given: object, **named: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(ServerVerbs, "create", fails)

    answer = ask("POST", CONFIG_MAPS, config_map())

    assert (answer.status, answer.body["reason"]) == (500, "InternalError")
    assert "ZeroDivisionError" in answer.body["message"]
    assert "secret detail" not in answer.body["message"]
    assert "POST" in caplog.text


def build_simulated_server() -> RequestClient:
    clock, entropy = SimulatedClock(), SeededEntropy()
    api = ApiServer(clock=clock, entropy=entropy)
    return RequestClient(RequestHandler(api, clock=clock, entropy=entropy, audit=AuditLog()), api)


async def test_a_watch_is_told_line_by_line_until_its_time_is_up() -> None:
    ask = build_simulated_server()
    ask("POST", CONFIG_MAPS, config_map("a"))

    stream = ask.stream(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=5")
    before = await read_next_events(stream)
    ask("POST", CONFIG_MAPS, config_map("b"))
    ask("DELETE", f"{CONFIG_MAPS}/a")
    after = await read_all_events(stream)

    assert [(event["type"], event["object"]["metadata"]["name"]) for event in [*before, *after]] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]
    assert after[0]["object"]["kind"] == "ConfigMap"


async def test_bookmarks_come_each_minute_to_those_who_want_them() -> None:
    ask = build_simulated_server()
    version = ask("GET", CONFIG_MAPS).body["metadata"]["resourceVersion"]

    wanting = ask.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=150")
    others = ask.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=150")

    assert [event["type"] for event in await read_all_events(wanting)] == ["BOOKMARK", "BOOKMARK"]
    assert await read_all_events(others) == []


async def test_the_initial_state_ends_with_a_bookmark_that_says_so() -> None:
    ask = build_simulated_server()
    ask("POST", CONFIG_MAPS, config_map("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"

    added, bookmark = await read_all_events(ask.stream(f"{CONFIG_MAPS}?{query}"))

    assert added["type"] == "ADDED"
    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.parametrize("query", ["sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"])
async def test_watch_options_that_do_not_go_together(query: str) -> None:
    assert build_simulated_server()("GET", f"{CONFIG_MAPS}?watch=1&{query}").status == 422


async def test_a_watch_from_a_forgotten_version_is_told_so_and_ends() -> None:
    ask = build_simulated_server()
    ask.api.storage.compact()

    (event,) = await read_all_events(ask.stream(f"{CONFIG_MAPS}?watch=1&resourceVersion=1"))

    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")


async def test_a_watch_of_one_object_and_of_metadata_alone() -> None:
    ask = build_simulated_server()
    ask("POST", CONFIG_MAPS, config_map("a", "default", x="1"))
    ask("POST", CONFIG_MAPS, config_map("b"))

    stream = ask.stream(f"{CONFIG_MAPS}/a?watch=1&timeoutSeconds=1", headers=METADATA)
    (event,) = await read_all_events(stream)

    assert event["object"]["metadata"]["name"] == "a"
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "data" not in event["object"]


async def test_a_watch_as_tables_tells_the_columns_once() -> None:
    ask = build_simulated_server()
    ask("POST", CONFIG_MAPS, config_map("a"))
    ask("POST", CONFIG_MAPS, config_map("b"))

    first, second = await read_all_events(ask.stream(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1", headers=TABLE))

    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"] == ["b", 0, "0s"]


async def test_the_number_of_watches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge_cluster._internal.embedded.read_requests._MAXIMUM_WATCHES", 1)
    ask = build_simulated_server()
    stream = ask.stream(f"{CONFIG_MAPS}?watch=1")

    refused = ask("GET", f"{CONFIG_MAPS}?watch=1")
    await stream.close()

    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    await ask.stream(f"{CONFIG_MAPS}?watch=1").close()


async def test_closing_the_server_ends_its_watches() -> None:
    ask = build_simulated_server()
    stream = ask.stream(f"{CONFIG_MAPS}?watch=1")

    ask.handler.close()

    assert await read_all_events(stream) == []


def test_bodies_are_what_they_were(ask: RequestClient) -> None:
    text = json.dumps({"metadata": {"name": "x"}, "data": {"snowman": "\u2603"}}, ensure_ascii=True).encode()

    assert ask("POST", CONFIG_MAPS, text).body["data"] == {"snowman": "\u2603"}
