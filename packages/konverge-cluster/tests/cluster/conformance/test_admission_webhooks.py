"""Admission webhooks: which requests call them, what they receive, and the effect of their responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge.errors import AlreadyExistsError, ApiError, InvalidError, NotFoundError, ServerError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CONFIG_MAP, NAMESPACE, config_map
from tests.cluster.conformance.webhook_registrations import (
    CONFIG_MAPS,
    GROUP,
    MUTATING,
    VALIDATING,
    WebhookRegistrations,
    webhook_registrations,
)
from tests.cluster.conformance.webhook_servers import ALLOWED, Handler, json_patch, webhook_server
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio

LABELLED: Object = {"metadata": {"labels": {"a": "b"}}}


@pytest.fixture
async def hooks(cluster: Cluster, tmp_path: Path) -> AsyncIterator[WebhookRegistrations]:
    async with webhook_registrations(cluster, tmp_path) as found:
        yield found


def expect_denial(**status: Any) -> Handler:
    return lambda request: {"allowed": False, "status": status} if status else {"allowed": False}


async def expect_refusal(cluster: Cluster, name: str = "settings", x: str = "") -> ApiError:
    with pytest.raises(ApiError) as error:
        await cluster.client.create(config_map(cluster.namespace, name, x=x))
    return error.value


# The content of a denial


@pytest.mark.parametrize(
    ("status", "message", "code", "reason"),
    [
        ({}, "denied the request without explanation", 400, "BadRequest"),
        ({"message": "not today"}, "denied the request: not today", 400, "BadRequest"),
        ({"reason": "Because"}, "denied the request: Because", 400, "Because"),
        ({"message": "no", "code": 422, "reason": "Invalid"}, "denied the request: no", 422, "Invalid"),
        ({"message": "tea", "code": 418}, "denied the request: tea", 418, "Unknown"),
    ],
)
async def test_a_denial_reads_like_this(
    cluster: Cluster, hooks: WebhookRegistrations, status: Object, message: str, code: int, reason: str
) -> None:
    await hooks.add(VALIDATING, "guard", expect_denial(**status))

    error = await expect_refusal(cluster)

    assert error.message == f'admission webhook "guard.konverge.test" {message}'
    assert (error.code, error.reason) == (code, reason)


async def test_a_denial_brings_the_causes_that_the_webhook_names(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    cause = {"reason": "FieldValueInvalid", "message": "too large", "field": "spec.size"}
    await hooks.add(
        VALIDATING, "guard", expect_denial(message="no", code=422, reason="Invalid", details={"causes": [cause]})
    )

    error = await expect_refusal(cluster)

    assert isinstance(error, InvalidError)
    assert [(each.field, each.message) for each in error.causes] == [("spec.size", "too large")]


async def test_nothing_is_stored_when_a_webhook_denies(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(VALIDATING, "guard", expect_denial(message="no"))

    await expect_refusal(cluster, "settings")

    with pytest.raises(NotFoundError):
        await cluster.client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "settings"))


async def test_a_mutating_webhook_denies_in_the_same_words(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(MUTATING, "changer", expect_denial(message="not mine"))

    error = await expect_refusal(cluster)

    assert error.message == 'admission webhook "changer.konverge.test" denied the request: not mine'


# The request to a webhook


async def test_a_webhook_is_shown_the_request(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: ALLOWED)

    await cluster.client.create(config_map(cluster.namespace, a="1"), field_manager="ann")

    (request,) = hooks.requests
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    resource = {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["kind"], request["resource"]) == (kind, resource)
    assert (request["requestKind"], request["requestResource"]) == (kind, resource)
    assert (request["operation"], request["name"], request["namespace"]) == ("CREATE", "settings", cluster.namespace)
    assert request["dryRun"] is False
    assert request["oldObject"] is None
    assert request["options"]["kind"] == "CreateOptions"
    assert request["options"]["fieldManager"] == "ann"
    assert "system:masters" in request["userInfo"]["groups"]
    assert request["object"]["data"] == {"a": "1"}
    assert request["object"]["kind"] == "ConfigMap"
    assert request["object"]["metadata"]["uid"]


async def test_a_mutating_webhook_sees_an_object_that_has_no_identity_yet(
    cluster: Cluster, hooks: WebhookRegistrations
) -> None:
    await hooks.add(MUTATING, "changer", lambda request: ALLOWED)
    wanted = config_map(cluster.namespace)
    wanted["metadata"] = {"generateName": "some-", "namespace": cluster.namespace}

    await cluster.client.create(wanted)

    (request,) = hooks.requests
    assert "name" not in request
    assert not {"uid", "creationTimestamp", "name"} & request["object"]["metadata"].keys()
    assert request["object"]["metadata"]["managedFields"]


async def test_each_kind_of_write_is_asked_about(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: ALLOWED)
    created = await cluster.client.create(config_map(cluster.namespace, a="1"))
    key = ObjectKey.of(created)

    await cluster.client.update({**created, "data": {"a": "2"}})
    await cluster.client.patch(CONFIG_MAP, key, {"data": {"a": "3"}}, patch_type="merge")
    await cluster.client.apply(config_map(cluster.namespace, b="1"), field_manager="ann")
    await cluster.client.apply(config_map(cluster.namespace, b="1"), field_manager="ann")
    await cluster.client.delete(CONFIG_MAP, key)

    expected = [(request["operation"], (request["options"]["kind"])) for request in hooks.requests]
    assert expected == [("CREATE", "CreateOptions"), *[("UPDATE", "UpdateOptions")] * 4, ("DELETE", "DeleteOptions")]
    update, gone = hooks.requests[1], hooks.requests[-1]
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"a": "1"}, {"a": "2"})
    assert gone["object"] is None
    assert gone["oldObject"]["data"] == {"a": "3", "b": "1"}


async def test_a_delete_of_a_collection_asks_about_each_object_without_a_name(
    cluster: Cluster, hooks: WebhookRegistrations
) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: ALLOWED)
    await cluster.client.create(config_map(cluster.namespace, "one", labels={"go": "yes"}))

    await cluster.client.delete_collection(CONFIG_MAP, namespace=cluster.namespace, label_selector="go=yes")

    request = hooks.requests[-1]
    assert "name" not in request
    assert (request["operation"], request["oldObject"]["metadata"]["name"]) == ("DELETE", "one")


async def test_a_dry_run_is_asked_about_as_one(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: ALLOWED)

    await cluster.client.create(config_map(cluster.namespace), dry_run=True)

    assert (hooks.requests[0]["dryRun"], hooks.requests[0]["options"]["dryRun"]) == (True, ["All"])


async def test_what_breaks_the_rules_is_refused_before_a_validating_webhook_is_asked(
    cluster: Cluster, hooks: WebhookRegistrations
) -> None:
    await hooks.add(VALIDATING, "guard", expect_denial(message="no"))

    error = await expect_refusal(cluster, "Bad_Name")

    assert isinstance(error, InvalidError)
    assert hooks.requests == []


async def test_a_validating_webhook_is_asked_before_a_name_is_found_to_be_taken(
    cluster: Cluster, hooks: WebhookRegistrations
) -> None:
    await cluster.client.create(config_map(cluster.namespace, "taken"))
    await hooks.add(VALIDATING, "guard", lambda request: ALLOWED)

    assert isinstance(await expect_refusal(cluster, "taken"), AlreadyExistsError)
    assert [request["name"] for request in hooks.requests] == ["taken"]


# The selection of requests


async def test_operations_that_no_rule_names_are_not_asked_about(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    rule = {**CONFIG_MAPS, "operations": ["DELETE"]}
    await hooks.add(VALIDATING, "guard", expect_denial(message="keep it"), rules=[rule])
    await cluster.client.create(config_map(cluster.namespace))

    with pytest.raises(ApiError, match="keep it"):
        await cluster.client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "settings"))


async def test_an_object_selector_looks_at_the_labels(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(
        VALIDATING, "guard", expect_denial(message="no"), objectSelector={"matchLabels": {"guarded": "yes"}}
    )

    await cluster.client.create(config_map(cluster.namespace, "free"))
    with pytest.raises(ApiError, match="denied the request: no"):
        await cluster.client.create(config_map(cluster.namespace, "held", labels={"guarded": "yes"}))


async def test_a_label_that_an_update_takes_away_still_selects(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, labels={"guarded": "yes"}))
    await hooks.add(
        VALIDATING, "guard", expect_denial(message="no"), objectSelector={"matchLabels": {"guarded": "yes"}}
    )
    del created["metadata"]["labels"]

    with pytest.raises(ApiError, match="denied the request: no"):
        await cluster.client.update(created)


async def test_a_subresource_is_asked_about_only_where_a_rule_names_it(
    cluster: Cluster, hooks: WebhookRegistrations, widgets: Widgets
) -> None:
    rule = {"operations": ["UPDATE"], "apiGroups": [widgets.group], "apiVersions": ["*"]}
    await hooks.add(VALIDATING, "parts", lambda request: ALLOWED, rules=[{**rule, "resources": ["widgets/status"]}])
    created = await cluster.client.create(widgets.new())

    updated = await cluster.client.update({**created, "spec": {**created["spec"], "size": 2}})
    await cluster.client.update({**updated, "status": {"phase": "Ready"}}, subresource="status")

    (request,) = hooks.requests
    assert (request["subResource"], request["requestSubResource"]) == ("status", "status")
    assert request["object"]["status"] == {"phase": "Ready"}


async def test_a_namespace_is_selected_by_its_own_labels(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    rule = {"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"]}
    await hooks.add(VALIDATING, "guard", expect_denial(message="leave it"), rules=[rule])

    with pytest.raises(ApiError, match="leave it"):
        await cluster.client.patch(NAMESPACE, ObjectKey("", cluster.namespace), LABELLED, patch_type="merge")


async def test_no_webhook_is_asked_about_configurations_of_webhooks(
    cluster: Cluster, hooks: WebhookRegistrations
) -> None:
    rule = {"operations": ["*"], "apiGroups": [GROUP], "apiVersions": ["*"], "resources": ["*/*"]}
    created = await hooks.add(
        VALIDATING, "guard", expect_denial(message="for ever"), rules=[rule], namespaceSelector={}
    )

    await cluster.client.patch(GroupVersionKind.of(created), ObjectKey.of(created), LABELLED, patch_type="merge")

    assert hooks.requests == []


# The changes of a webhook


async def test_a_patch_changes_what_is_stored(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(
        MUTATING, "changer", lambda request: json_patch({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}})
    )

    created = await cluster.client.create(config_map(cluster.namespace, x="1"), field_manager="ann")

    assert created["metadata"]["labels"] == {"a": "b"}
    # No manager owns fields that a webhook wrote.
    (entry,) = created["metadata"]["managedFields"]
    assert (entry["manager"], entry["fieldsV1"]) == ("ann", {"f:data": {".": {}, "f:x": {}}})


async def test_what_a_patch_makes_is_held_to_the_rules(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(
        MUTATING, "changer", lambda request: json_patch({"op": "add", "path": "/metadata/labels", "value": {"a b": ""}})
    )

    assert isinstance(await expect_refusal(cluster), InvalidError)


async def test_a_custom_resource_is_defaulted_pruned_and_validated_again(
    cluster: Cluster, hooks: WebhookRegistrations, widgets: Widgets
) -> None:
    rule = {"operations": ["CREATE"], "apiGroups": [widgets.group], "apiVersions": ["*"], "resources": ["widgets"]}

    def change(request: Object) -> Object:
        size = {"op": "replace", "path": "/spec/size", "value": 99 if request["name"] == "large" else 7}
        unknown = {"op": "add", "path": "/spec/surprise", "value": 1}
        return json_patch(size, unknown, {"op": "remove", "path": "/spec/colour"})

    await hooks.add(MUTATING, "changer", change, rules=[rule])

    created = await cluster.client.create(widgets.new(colour="red"))
    with pytest.raises(InvalidError, match="spec.size"):
        await cluster.client.create(widgets.new("large"))

    assert created["spec"] == {"size": 7, "colour": "blue"}


async def test_validating_webhooks_see_what_mutating_ones_made(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: ALLOWED)
    await hooks.add(
        MUTATING, "changer", lambda request: json_patch({"op": "add", "path": "/data", "value": {"made": "yes"}})
    )

    await cluster.client.create(config_map(cluster.namespace))

    assert hooks.webhook_names == ["changer", "guard"]
    assert hooks.requests[1]["object"]["data"] == {"made": "yes"}


async def test_a_webhook_is_asked_again_when_another_one_changed_the_object_after_it(
    cluster: Cluster, hooks: WebhookRegistrations
) -> None:
    def count(request: Object) -> Object:
        seen = request["object"]["data"].get("count", "")
        return json_patch({"op": "add", "path": "/data/count", "value": f"{seen}+"})

    def add(request: Object) -> Object:
        return json_patch({"op": "add", "path": "/data/later", "value": "yes"})

    await hooks.add(MUTATING, "a-first", count, reinvocationPolicy="IfNeeded")
    await hooks.add(MUTATING, "b-second", add)

    created = await cluster.client.create(config_map(cluster.namespace, x="1"))

    assert hooks.webhook_names == ["a-first", "b-second", "a-first"]
    assert created["data"] == {"x": "1", "count": "++", "later": "yes"}


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "test", "path": "/data/x", "value": "5"}, "testing value /data/x failed: test failed"),
        (
            {"op": "replace", "path": "/data/none/x", "value": "5"},
            "replace operation does not apply: doc is missing path: /data/none/x: missing value",
        ),
        (
            {"op": "add", "path": "/data/n", "value": 5},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
    ],
)
async def test_a_patch_that_does_not_fit_is_the_servers_error(
    cluster: Cluster, hooks: WebhookRegistrations, operation: Object, why: str
) -> None:
    await hooks.add(MUTATING, "changer", lambda request: json_patch(operation))

    error = await expect_refusal(cluster, x="1")

    assert (error.code, error.message) == (500, f"Internal error occurred: {why}")


# Webhooks that do not respond


def review(response: Any, **rest: Any) -> Handler:
    expected = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response, **rest}
    return lambda request: web.json_response(expected)


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        (
            lambda request: web.Response(status=500, text="boom"),
            'failed to call webhook: an error on the server ("boom") has prevented the request from succeeding',
        ),
        (
            lambda request: web.Response(status=404, text="nope"),
            "failed to call webhook: the server could not find the requested resource",
        ),
        (review(None), "received invalid webhook response: webhook response was absent"),
        (
            review({"uid": "x"}, apiVersion="admission.k8s.io/v1beta1"),
            "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (
            review({"uid": "x", "allowed": "yes"}),
            "failed to call webhook: json: cannot unmarshal string into Go struct field "
            "AdmissionResponse.response.allowed of type bool",
        ),
        (
            lambda request: {"allowed": True, "patch": "W10="},
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        (
            lambda request: {"allowed": True, "patchType": "JSONPatch"},
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
    ],
)
async def test_an_answer_that_is_none_fails_the_request(
    cluster: Cluster, hooks: WebhookRegistrations, handler: Handler, why: str
) -> None:
    await hooks.add(MUTATING, "changer", handler)

    error = await expect_refusal(cluster)

    message = f'failed calling webhook "changer.konverge.test": {why}'
    assert isinstance(error, ServerError)
    assert (error.code, error.message) == (500, f"Internal error occurred: {message}")
    assert [cause.message for cause in error.causes] == [message]


async def test_an_answer_to_another_question_fails_the_request(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: {"uid": "other", "allowed": True})

    error = await expect_refusal(cluster)

    uid = hooks.requests[0]["uid"]
    assert error.message.endswith(f'received invalid webhook response: expected response.uid="{uid}", got "other"')


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (
            {"url": "https://127.0.0.1:1/x"},
            'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused',
        ),
        (
            {"service": {"namespace": "default", "name": "absent", "path": "/x"}},
            'Post "https://absent.default.svc:443/x?timeout=10s": service "absent" not found',
        ),
    ],
)
async def test_a_webhook_that_cannot_be_reached_fails_the_request(
    cluster: Cluster, hooks: WebhookRegistrations, config: Object, why: str
) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: ALLOWED, clientConfig=config)

    error = await expect_refusal(cluster)

    expected = f'failed calling webhook "guard.konverge.test": failed to call webhook: {why}'
    assert error.message == f"Internal error occurred: {expected}"


async def test_a_certificate_of_another_authority_is_not_trusted(
    cluster: Cluster, hooks: WebhookRegistrations, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    async with webhook_server(tmp_path / "other") as other:
        config = {**hooks.configuration(VALIDATING, "guard")["webhooks"][0]["clientConfig"]}
        await hooks.add(
            VALIDATING, "guard", lambda request: ALLOWED, clientConfig={**config, "caBundle": other.authority}
        )

        error = await expect_refusal(cluster)

    assert "tls: failed to verify certificate: x509: certificate signed by unknown authority" in error.message


@pytest.mark.slow
async def test_a_webhook_that_takes_too_long_fails_the_request(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    async def dawdle(request: Object) -> Object:
        await cluster.clock.sleep(5)
        return ALLOWED

    await hooks.add(VALIDATING, "guard", dawdle, timeoutSeconds=1)

    error = await expect_refusal(cluster)

    assert "?timeout=1s" in error.message
    assert error.message.endswith(": context deadline exceeded")


@pytest.mark.slow
async def test_a_webhook_may_take_its_time(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    async def dawdle(request: Object) -> Object:
        await cluster.clock.sleep(1)
        return {"allowed": False, "status": {"message": "after a while"}}

    await hooks.add(VALIDATING, "guard", dawdle)

    assert "after a while" in (await expect_refusal(cluster)).message


async def test_a_failure_can_be_ignored(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    config = {"url": "https://127.0.0.1:1/x"}
    for kind, name in ((VALIDATING, "guard"), (MUTATING, "changer")):
        await hooks.add(kind, name, lambda request: ALLOWED, clientConfig=config, failurePolicy="Ignore")

    assert await cluster.client.create(config_map(cluster.namespace))


# Warnings and configurations


async def test_warnings_reach_the_one_who_asked(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    await hooks.add(VALIDATING, "guard", lambda request: {"allowed": True, "warnings": ["careful"]})
    transport = cluster.new_transport()

    answer = await transport.request(
        "POST",
        f"/api/v1/namespaces/{cluster.namespace}/configmaps",
        headers={"content-type": "application/json", "accept": "application/json"},
        body=b'{"metadata":{"name":"warned"}}',
        timeout_seconds=60,
    )

    assert answer.status == 201
    assert '299 - "careful"' in answer.headers["warning"]


async def test_a_configuration_gets_its_defaults(cluster: Cluster, hooks: WebhookRegistrations) -> None:
    plain = hooks.configuration(MUTATING, "plain")
    plain["webhooks"][0]["clientConfig"] = {"service": {"namespace": "default", "name": "absent"}}
    del plain["webhooks"][0]["namespaceSelector"]

    created = await cluster.client.create(plain, dry_run=True)

    (webhook,) = created["webhooks"]
    assert created["metadata"]["generation"] == 1
    assert webhook["clientConfig"] == {"service": {"namespace": "default", "name": "absent", "port": 443}}
    assert webhook["rules"] == [{**CONFIG_MAPS, "scope": "*"}]
    assert (webhook["namespaceSelector"], webhook["objectSelector"]) == ({}, {})
    assert (webhook["failurePolicy"], webhook["matchPolicy"]) == ("Fail", "Equivalent")
    assert (webhook["timeoutSeconds"], webhook["reinvocationPolicy"]) == (10, "Never")


@pytest.mark.parametrize(
    ("wrong", "mistakes"),
    [
        ({"name": "short"}, {("webhooks[0].name", "FieldValueInvalid")}),
        ({"sideEffects": "Some"}, {("webhooks[0].sideEffects", "FieldValueNotSupported")}),
        ({"clientConfig": {}}, {("webhooks[0].clientConfig", "FieldValueRequired")}),
        ({"clientConfig": {"url": "http://127.0.0.1/"}}, {("webhooks[0].clientConfig.url", "FieldValueInvalid")}),
        ({"admissionReviewVersions": []}, {("webhooks[0].admissionReviewVersions", "FieldValueRequired")}),
        ({"timeoutSeconds": 31}, {("webhooks[0].timeoutSeconds", "FieldValueInvalid")}),
        (
            {"rules": [{**CONFIG_MAPS, "operations": ["READ"], "scope": "Galaxy"}]},
            {
                ("webhooks[0].rules[0].operations[0]", "FieldValueNotSupported"),
                ("webhooks[0].rules[0].scope", "FieldValueNotSupported"),
            },
        ),
    ],
)
async def test_a_configuration_is_held_to_the_rules(
    cluster: Cluster, hooks: WebhookRegistrations, wrong: Object, mistakes: set[tuple[str, str]]
) -> None:
    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(hooks.configuration(VALIDATING, "guard", **wrong), dry_run=True)

    assert {(cause.field, cause.reason) for cause in refused.value.causes} == mistakes
