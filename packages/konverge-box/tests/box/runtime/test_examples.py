"""The first three examples, from the file to the objects in a cluster."""

import base64
from typing import Any

import pytest
import yaml

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import RunOptions
from konverge_box._internal.file import OperatorBox, load_box
from tests.box.running.box_harness import CONFIG_MAP, DEPLOYMENT, EXAMPLES, SECRET, BoxHarness

pytestmark = pytest.mark.anyio

NAMESPACE = GroupVersionKind("", "v1", "Namespace")


def example(name: str) -> tuple[OperatorBox, GroupVersionKind, dict[str, Any]]:
    folder = EXAMPLES / name
    file = folder / "box.yaml"
    box = load_box(file.read_bytes(), file=str(file))
    [gvk] = [each.resource.gvk for each in box.spec.crds.values()]
    [owner] = [each for each in map(read, folder.glob("*.yaml")) if each["kind"] == gvk.kind]
    return box, gvk, owner


def read(file: Any) -> Object:
    found: Object = yaml.safe_load(file.read_text())
    return found


async def test_the_website_is_served_and_says_where(library: BoxHarness) -> None:
    box, gvk, owner = example("hello-website")
    async with library.running(box):
        await library.create(gvk, "hello", **owner["spec"])
        await library.wait_for_condition(gvk, "hello", "Healthy", status="True")

        assert (await library.get(DEPLOYMENT, "hello"))["spec"]["replicas"] == 2
        assert (await library.get(CONFIG_MAP, "hello-pages"))["data"] == {"index.html": "<h1>Hello from a box</h1>\n"}

        async def reports() -> bool:
            return bool((await library.get(gvk, "hello"))["status"].get("readyReplicas") == 2)

        await library.cluster.eventually(reports, describe="the status has the replicas")
        status = (await library.get(gvk, "hello"))["status"]
        assert "url" not in status
        assert status["observedGeneration"] == 1

        await library.change(gvk, "hello", host="hello.example.com")
        ingress = GroupVersionKind("networking.k8s.io", "v1", "Ingress")

        async def is_there() -> bool:
            return await library.exists(ingress, "hello")

        await library.cluster.eventually(is_there, describe="the Ingress is made")
        await library.change(gvk, "hello", host=None)
        await library.wait_until_gone(ingress, "hello")


async def test_a_secret_is_copied_and_follows_its_source(library: BoxHarness) -> None:
    box, gvk, owner = example("secret-copy")
    namespaces = [f"{library.namespace}-a", f"{library.namespace}-b"]
    for name in namespaces:
        await library.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def copies(text: str) -> bool:
        for name in namespaces:
            found = await library.client.get(SECRET, ObjectKey(name, "registry-credentials"))
            assert base64.b64decode(found["data"]["password"]).decode() == text
        return True

    everywhere = RunOptions()
    async with library.running(box, everywhere):
        await library.create(gvk, "registry", **{**owner["spec"], "namespaces": namespaces})
        await library.wait_for_condition(gvk, "registry", "Blocked", message="waiting for Secret")
        metadata = {"name": "registry-credentials", "namespace": library.namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": "open sesame"}}
        await library.client.create(secret)
        await library.cluster.eventually(lambda: copies("open sesame"), describe="the copies are made")
        body = {"stringData": {"password": "changed"}}
        await library.client.patch(SECRET, library.key("registry-credentials"), body, patch_type="merge")
        await library.cluster.eventually(lambda: copies("changed"), describe="the copies follow")
        assert "open sesame" not in str(await library.get(gvk, "registry"))

        await library.delete(gvk, "registry")
        await library.wait_until_gone(gvk, "registry")
    for name in namespaces:
        assert not (await library.client.list(SECRET, namespace=name)).items
        await library.client.delete(NAMESPACE, ObjectKey("", name))


async def test_rules_deny_warn_and_see_what_mutation_made(library: BoxHarness) -> None:
    box, gvk, owner = example("validation")
    async with library.running(box):
        await library.create(gvk, "billing", **owner["spec"])
        await library.wait_for_condition(gvk, "billing", "Healthy", status="True")
        assert (await library.get(DEPLOYMENT, "billing"))["spec"]["replicas"] == 1
        assert (await library.get(DEPLOYMENT, "billing"))["metadata"]["labels"]["demo.konverge.dev/tier"] == "small"

        await library.create(gvk, "rogue", image="docker.io/rogue:latest", replicas=5)
        ready = await library.wait_for_condition(gvk, "rogue", "ValidationFailed", status="False")
        assert "docker.io/rogue:latest does not come from registry.example.com" in ready.message
        assert "name a version, not latest" in ready.message
        assert "a small service has one or two replicas" in ready.message
        await library.wait_for_condition(
            gvk, "rogue", "WarnRuleViolation", "ValidationWarning", "True", "nobody owns this service"
        )
        assert not await library.exists(DEPLOYMENT, "rogue")

        await library.change(gvk, "rogue", image="registry.example.com/rogue:1", replicas=2, owner="Rogues")
        await library.wait_for_condition(gvk, "rogue", "Healthy", status="True")
        await library.wait_for_condition(gvk, "rogue", "ValidationPassed", "ValidationFailed", "False")
        await library.wait_for_condition(gvk, "rogue", "NoWarnings", "ValidationWarning", "False")
