from __future__ import annotations

from typing import Any

import pytest

from konverge._internal.apply import find_builtin_schema
from konverge.kube import Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.builtin_resources import list_builtin_resources
from tests.cluster.embedded.objects import DEFINITION, webapp_definition
from tests.cluster.embedded.request_client import RequestClient

AGGREGATED = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/etcd"])
def test_the_server_is_healthy(ask: RequestClient, path: str) -> None:
    answer = ask("GET", path)

    assert (answer.status, answer.body) == (200, b"ok")


def test_the_version_is_that_of_the_server_it_follows(ask: RequestClient) -> None:
    version = ask("GET", "/version").body

    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.3")


def group_of(document: Object, name: str) -> Any:
    return next(item for item in document["items"] if item["metadata"].get("name", "") == name)


def test_everything_can_be_discovered_at_once(ask: RequestClient, webapps: Object) -> None:
    answer = ask("GET", "/apis", headers=AGGREGATED)

    (version,) = group_of(answer.body, "demo.konverge.dev")["versions"]
    (resource,) = version["resources"]
    assert answer.headers["content-type"].endswith("as=APIGroupDiscoveryList")
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    assert resource["resource"] == "webapps"
    assert resource["responseKind"] == {"group": "demo.konverge.dev", "version": "v1", "kind": "WebApp"}
    assert (resource["scope"], resource["shortNames"], resource["categories"]) == ("Namespaced", ["wa"], ["all"])
    assert {each["subresource"]: each["responseKind"]["kind"] for each in resource["subresources"]} == {
        "scale": "Scale",
        "status": "WebApp",
    }


def test_the_core_group_is_discovered_apart(ask: RequestClient) -> None:
    document = ask("GET", "/api", headers=AGGREGATED).body

    (group,) = document["items"]
    plurals = [resource["resource"] for resource in group["versions"][0]["resources"]]
    assert group["metadata"] == {}
    assert plurals == sorted(plurals)
    assert "pods" in plurals


def test_a_client_that_knows_the_document_is_told_that_it_is_still_so(ask: RequestClient, api: ApiServer) -> None:
    tag = ask("GET", "/apis", headers=AGGREGATED).headers["etag"]

    same = ask("GET", "/apis", headers={**AGGREGATED, "if-none-match": tag})
    api.create(DEFINITION, webapp_definition())
    changed = ask("GET", "/apis", headers={**AGGREGATED, "if-none-match": tag})

    assert (same.status, same.body) == (304, None)
    assert changed.status == 200
    assert changed.headers["etag"] != tag


def test_the_older_forms_say_the_same(ask: RequestClient, webapps: Object) -> None:
    assert ask("GET", "/api").body["versions"] == ["v1"]
    groups = {group["name"]: group for group in ask("GET", "/apis").body["groups"]}
    assert groups["demo.konverge.dev"]["preferredVersion"] == {
        "groupVersion": "demo.konverge.dev/v1",
        "version": "v1",
    }
    assert ask("GET", "/apis/demo.konverge.dev").body["kind"] == "APIGroup"
    resources = {each["name"]: each for each in ask("GET", "/apis/demo.konverge.dev/v1").body["resources"]}
    assert set(resources) == {"webapps", "webapps/scale", "webapps/status"}
    assert (resources["webapps/scale"]["group"], resources["webapps/scale"]["kind"]) == ("autoscaling", "Scale")


@pytest.mark.parametrize("path", ["/apis/unserved.example", "/apis/apps/v9", "/api/v2", "/openapi/v3/apis/apps/v9"])
def test_what_is_not_served_is_not_found(ask: RequestClient, path: str) -> None:
    assert ask("GET", path).status == 404


def test_the_preferred_version_is_the_most_stable_and_then_the_newest(ask: RequestClient, api: ApiServer) -> None:
    body = webapp_definition()
    stored = body["spec"]["versions"][0]
    body["spec"]["versions"] = [
        {**stored, "name": name, "storage": name == "v1"} for name in ("v1alpha1", "v2beta1", "v1", "v10", "v2beta2")
    ]
    api.create(DEFINITION, body)

    group = ask("GET", "/apis/demo.konverge.dev").body

    assert [each["version"] for each in group["versions"]] == ["v10", "v1", "v2beta2", "v2beta1", "v1alpha1"]


def test_the_root_lists_the_paths(ask: RequestClient) -> None:
    paths = ask("GET", "/").body["paths"]

    assert {"/api/v1", "/apis/apps/v1", "/openapi/v3", "/version"} <= set(paths)


def test_each_group_version_has_an_openapi_document(ask: RequestClient, webapps: Object) -> None:
    index = ask("GET", "/openapi/v3").body["paths"]

    for place, entry in index.items():
        document = ask("GET", entry["serverRelativeURL"]).body
        assert document["openapi"] == "3.0.0"
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{place}?hash=")
    assert "apis/demo.konverge.dev/v1" in index
    assert len(index) == len({(each.gvk.group, each.gvk.version) for each in list_builtin_resources()}) + 1


def test_a_document_says_how_a_kind_may_be_patched(ask: RequestClient) -> None:
    document = ask("GET", "/openapi/v3/apis/apps/v1").body

    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    parameters = {parameter["name"] for parameter in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert {"fieldManager", "fieldValidation", "dryRun", "force"} <= parameters


def test_a_document_holds_every_schema_that_it_refers_to(ask: RequestClient, webapps: Object) -> None:
    for path in ("/openapi/v3/apis/apps/v1", "/openapi/v3/api/v1", "/openapi/v3/apis/demo.konverge.dev/v1"):
        document = ask("GET", path).body
        schemas = document["components"]["schemas"]
        assert references(document) <= {f"#/components/schemas/{name}" for name in schemas}
        assert not own_keywords(schemas)


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


def own_keywords(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {key for key in node if isinstance(key, str) and key.startswith("x-konverge")}
        return own.union(*map(own_keywords, node.values()))
    return set().union(*map(own_keywords, node)) if isinstance(node, list) else set()


def test_a_keyed_list_says_how_it_is_patched(ask: RequestClient) -> None:
    schemas = ask("GET", "/openapi/v3/apis/apps/v1").body["components"]["schemas"]

    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"


def test_a_custom_resource_is_found_by_its_kind(ask: RequestClient, webapps: Object) -> None:
    schemas = ask("GET", "/openapi/v3/apis/demo.konverge.dev/v1").body["components"]["schemas"]

    schema = schemas["dev.konverge.demo.v1.WebApp"]
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "demo.konverge.dev", "version": "v1", "kind": "WebApp"}
    ]
    assert schema["properties"]["spec"]["properties"]["size"]["default"] == "small"


@pytest.mark.parametrize("resource", list_builtin_resources(), ids=lambda resource: str(resource.gvk))
def test_every_built_in_kind_has_a_schema(resource: Any) -> None:
    assert resource.has_schema_defaults or find_builtin_schema(resource.gvk) is resource.schema


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"allowed": True}),
        ("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"allowed": True}),
    ],
)
def test_everybody_may_do_everything(ask: RequestClient, path: str, status: Object) -> None:
    spec = {"user": "alice", "resourceAttributes": {"verb": "delete", "resource": "nodes"}}

    answer = ask("POST", path, {"spec": spec})

    assert (answer.status, answer.body["spec"]) == (201, spec)
    assert status.items() <= answer.body["status"].items()


def test_a_user_is_told_who_it_is(ask: RequestClient) -> None:
    review = ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).body
    rules = ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "x"}}).body

    assert "system:masters" in review["status"]["userInfo"]["groups"]
    assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]
