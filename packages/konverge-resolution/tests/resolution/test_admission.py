"""`konverge resolvers package --admission`: what a real API server refuses of requests, and what it takes as before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from konverge.errors import InvalidError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from konverge_resolution._internal.cli.resolvers import resolvers
from konverge_resolution._internal.reference_parsing import parse_reference
from konverge_resolution._internal.requests.admission_policies import build_admission_manifests
from konverge_resolution._internal.requests.konverge_requests import build_request
from konverge_resolution._internal.requests.resolver_packaging import ResolverPackaging, package_resolvers
from konverge_resolution._internal.resolvers import STANDARD, load_resolvers
from konverge_resolution.requests import REQUEST, TEKTON_REQUEST
from tests.docs.pages import find_code_blocks
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import REAL, RequestNamespace, create_request_namespace, decode_data

TYPE = "resolution.tekton.dev/type"
CHANGED = "a request is immutable; create another one"
PACKAGED = ResolverPackaging("image", has_admission=True)


@dataclass
class Counter:
    """Where requests are handed in."""

    desk: RequestNamespace

    def own(self, resolver: str = "git", *, name: str = "a", **metadata: Any) -> Object:
        spec = {"params": {"url": "https://git.example.com/a"}} | ({"resolver": resolver} if resolver else {})
        return self._request(REQUEST, name, metadata, spec)

    def tektons(self, resolver: str = "git", *, name: str = "a", **metadata: Any) -> Object:
        labels = metadata.pop("labels", {}) | ({TYPE: resolver} if resolver else {})
        spec = {"params": [{"name": "url", "value": "https://git.example.com/a"}]}
        return self._request(TEKTON_REQUEST, name, {**metadata, "labels": labels}, spec)

    def _request(self, gvk: GroupVersionKind, name: str, metadata: Object, spec: Object) -> Object:
        metadata = {"name": name, "namespace": self.desk.namespace, **metadata}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}

    async def told(self, request: Object) -> str:
        """What whoever creates it is told; nothing when it is taken. Nothing is stored."""
        return await refusal(self.desk.cluster.client.create(request, dry_run=True))

    async def told_of_a_change(self, gvk: GroupVersionKind, name: str, change: Object) -> str:
        return await refusal(
            self.desk.cluster.client.patch(gvk, self.desk.key(name), change, patch_type="merge", dry_run=True)
        )

    async def until_refused(self, request: Object) -> None:
        async def is_refused() -> str:
            return await self.told(request)

        await self.desk.cluster.eventually(is_refused, describe="the policies are in effect")


async def refusal(asked: Any) -> str:
    try:
        await asked
    except InvalidError as error:
        return str(error)
    return ""


async def keep_config_map_informer(cluster: Cluster) -> None:
    """Keep the API server's informer of ConfigMaps for policies running for as long as the server.

    When the last policy with a built-in kind as parameter is deleted, kube-apiserver ends the shared informer of that
    kind and never starts it again (`ensureParamsForPolicyLocked` of Kubernetes 1.36): later policies read ConfigMaps
    as they were then. So one policy, which matches no request, is never deleted.
    """
    name, version = "tests-config-maps", "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": ["tests.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}
    policy = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "true"}],
    }
    binding = {
        "policyName": name,
        "paramRef": {"name": name, "namespace": "default", "parameterNotFoundAction": "Allow"},
        "validationActions": ["Deny"],
    }
    for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)):
        manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        await cluster.client.apply(manifest, field_manager="kubectl")


@pytest.fixture
async def counter(cluster: Cluster) -> AsyncIterator[Counter]:
    """With requests that were there before the policies, which are in effect."""
    counter = Counter(await create_request_namespace(cluster, with_tekton=True))
    before: Object = {"name": "before", "finalizers": ["tests.example.com/held"]}
    await cluster.client.create(counter.own("", labels={f"{REQUEST.group}/old": "yes"}, **before))
    await cluster.client.create(counter.tektons("", labels={f"{TEKTON_REQUEST.group}/old": "yes"}, **before))
    await counter.desk.set_config_map("konverge-resolution", timeout="1m")
    await keep_config_map_informer(cluster)
    found = build_admission_manifests(
        f"konverge-{cluster.namespace}", cluster.namespace, [cluster.namespace], serves_tekton=True
    )
    for obj in found:
        await cluster.client.apply(obj, field_manager="kubectl")
    try:
        await counter.until_refused(counter.own(labels={f"{REQUEST.group}/x": "y"}))
        await counter.until_refused(counter.own(""))
        await counter.until_refused(counter.tektons(""))
        yield counter
    finally:
        for obj in found:
            with suppress(NotFoundError):
                await cluster.client.delete(GroupVersionKind.of(obj), ObjectKey.of(obj))
        for gvk in (REQUEST, TEKTON_REQUEST):
            await cluster.client.patch(
                gvk, counter.desk.key("before"), {"metadata": {"finalizers": None}}, patch_type="merge"
            )


@REAL
@pytest.mark.anyio
async def test_labels_of_the_group_that_mean_nothing_are_refused_and_all_others_are_taken(counter: Counter) -> None:
    for make, group, known in (
        (counter.own, REQUEST.group, "expected none"),
        (counter.tektons, TEKTON_REQUEST.group, f"expected {TYPE}"),
    ):
        for label in (f"{group}/typo", f"resolver.{group}/git"):
            message = await counter.told(make(labels={"app": "shop", label: "x"}))
            assert f"labels of {group} are reserved: {known}, found {label}" in message
        others = ("app", "app.kubernetes.io/name", f"{group}.example.com/x", f"not{group}/x")
        assert await counter.told(make(labels=dict.fromkeys(others, "x"))) == ""
        assert await counter.told(make(annotations={f"{group}/note": "x"})) == ""


@REAL
@pytest.mark.anyio
async def test_a_request_without_a_resolver_is_refused_unless_the_configuration_has_a_default(counter: Counter) -> None:
    no_resolver, no_type = counter.own(""), counter.tektons("")
    assert "spec.resolver: expected the name of a resolver, found none" in await counter.told(no_resolver)
    assert f"label {TYPE}: expected the name of a resolver, found none" in await counter.told(no_type)

    async def is_taken() -> bool:
        return await counter.told(no_resolver) == ""

    await counter.desk.set_config_map("konverge-resolution", default_resolver="git")
    await counter.desk.cluster.eventually(is_taken, describe="the default counts")
    assert f"label {TYPE}" in await counter.told(no_type)  # Tekton's kind has no default
    await counter.desk.set_config_map("konverge-resolution", default_resolver=" ")
    await counter.until_refused(no_resolver)
    # Nobody can know whether there is a default: whoever fulfils requests says so instead.
    await counter.desk.cluster.client.delete(
        GroupVersionKind("", "v1", "ConfigMap"), counter.desk.key("konverge-resolution")
    )
    await counter.desk.cluster.eventually(is_taken, describe="there is no configuration")


@REAL
@pytest.mark.anyio
async def test_what_is_documented_is_taken_and_fulfilled_and_does_not_change(counter: Counter) -> None:
    desk = counter.desk
    owner = await desk.cluster.client.get(GroupVersionKind("", "v1", "ConfigMap"), desk.key("konverge-resolution"))
    for page in ("README", "git", "bundles", "hub", "http", "running"):
        for shown in map(yaml.safe_load, find_code_blocks(f"docs/resolution/{page}.md", "yaml")):
            if isinstance(shown, dict) and "resolver" in shown:
                for reference in parse_reference(shown).choices:
                    assert await counter.told(build_request(reference, owner)) == "", (page, shown)
            if isinstance(shown, dict) and shown.get("kind") == "ResolutionRequest":
                shown["metadata"]["namespace"] = desk.namespace
                assert await counter.told(shown) == "", (page, shown)
    async with desk.running_resolvers(FakeResolver(), serves_tekton=True):
        await desk.create_request("a")
        await desk.create_tekton_request("a", "shelf", {"url": "https://a.example/a"})
        for gvk in (REQUEST, TEKTON_REQUEST):
            assert decode_data(await desk.wait_until_ended("a", gvk)) == BOX
            for labels in ({"app": "x"}, {"app": None}):
                assert await counter.told_of_a_change(gvk, "a", {"metadata": {"labels": labels}}) == ""
    changed = {REQUEST: {"params": {"url": "x"}}, TEKTON_REQUEST: {"params": [{"name": "url", "value": "x"}]}}
    for gvk, spec in changed.items():
        assert CHANGED in await counter.told_of_a_change(gvk, "a", {"spec": spec})
    for value in ("git", None):
        message = await counter.told_of_a_change(TEKTON_REQUEST, "a", {"metadata": {"labels": {TYPE: value}}})
        assert f"label {TYPE}: {CHANGED}" in message


@REAL
@pytest.mark.anyio
async def test_what_was_there_before_can_be_edited_and_let_go(counter: Counter) -> None:
    for gvk in (REQUEST, TEKTON_REQUEST):
        for metadata in ({"finalizers": None}, {"labels": {"app": "x"}}, {"labels": {f"{gvk.group}/old": None}}):
            assert await counter.told_of_a_change(gvk, "before", {"metadata": metadata}) == ""
        for label in ("old", "new"):
            message = await counter.told_of_a_change(
                gvk, "before", {"metadata": {"labels": {f"{gvk.group}/{label}": "x"}}}
            )
            assert f"found {gvk.group}/{label}" in message


def list_policies(chosen: ResolverPackaging) -> list[str]:
    found = package_resolvers(load_resolvers(STANDARD), chosen)
    return [each["metadata"]["name"] for each in found if each["kind"] == "ValidatingAdmissionPolicy"]


def test_policies_are_printed_when_they_are_wanted_and_once_in_a_cluster() -> None:
    assert list_policies(ResolverPackaging("image")) == []
    assert list_policies(PACKAGED) == ["konverge-resolution-labels", "konverge-resolution-resolver"]
    assert list_policies(replace(PACKAGED, serves_tekton=True))[2:] == ["konverge-resolution-tekton"]
    answer = CliRunner().invoke(resolvers, ["package", "--admission", "--no-lifecycle"])
    assert answer.exit_code == 2
    assert (
        "--admission cannot be combined with --no-lifecycle: it applies to the requests of every resolver"
        in answer.output
    )


def test_they_are_about_the_namespaces_whose_requests_are_fulfilled() -> None:
    watched = replace(PACKAGED, watched=("shop", "bank"))
    within = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["bank", "shop"]}
    for chosen, expected in ((PACKAGED, None), (watched, {"namespaceSelector": {"matchExpressions": [within]}})):
        found = package_resolvers(load_resolvers(STANDARD), chosen)
        bindings = [each for each in found if each["kind"] == "ValidatingAdmissionPolicyBinding"]
        assert [each["spec"].get("matchResources") for each in bindings] == [expected] * 2
