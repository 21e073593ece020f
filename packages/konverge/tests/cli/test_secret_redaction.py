"""Values of Secrets that a server quotes: planted, and looked for in everything that an operator and the commands show.

A webhook and, on the real cluster, a ValidatingAdmissionPolicy refuse objects with the objects' own values in their
words, and warn of others with them.
"""

from __future__ import annotations

import asyncio
import base64
import html
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import anyio.to_thread
import pytest
import yaml

from konverge.crd import crd_manifest, find_definition
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge
from tests.cli.secret_leaks_operator import GIVEN, MADE, TYPED, VALUES, Clerk, Vault
from tests.cli.test_bad_input import find_unused_port
from tests.cluster.conformance.webhook_servers import ALLOWED, WebhookServer, webhook_server

pytestmark = [pytest.mark.anyio, pytest.mark.real_time, pytest.mark.slow]

FILE = Path(__file__).parent / "secret_leaks_operator.py"
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
COMMANDS = (("diff",), ("explain",), ("preview",), ("diff", "-o", "json"), ("explain", "-o", "json"))
ADMISSION = "admissionregistration.k8s.io"
VAULT, CLERK = find_definition(Vault).gvk, find_definition(Clerk).gvk
CRATE = GroupVersionKind("vaults.konverge.test", "v1", "Crate")
BOX = {
    "apiVersion": "konverge.dev/v1alpha1",
    "kind": "OperatorBox",
    "metadata": {"name": "boxed"},
    "spec": {
        "crds": {
            "crate": {
                "resource": {
                    "apiVersion": "vaults.konverge.test/v1",
                    "kind": "Crate",
                    "schema": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                },
                "cross": [{"apiVersion": "v1", "kind": "Secret", "as": "given", "selector": {"name": "source"}}],
                "onReconcile": {
                    "configMaps": [
                        {"name": "{{ metadata.name }}-warned", "data": {"token": "{{ cross.given.data.token }}"}},
                        {"name": "{{ metadata.name }}-refused", "data": {"token": "{{ cross.given.data.token }}"}},
                    ],
                    "secrets": [
                        {
                            "name": "{{ metadata.name }}-refused",
                            "stringData": {"token": "{{ cross.given.data.token }}"},
                        }
                    ],
                },
            }
        }
    },
}


def forms(value: str) -> Iterator[str]:
    """How somebody may write a value, or the beginning of it."""
    for each in (value, value[: len(value) // 2 + 2]):
        yield from (each, json.dumps(each)[1:-1], json.dumps(json.dumps(each))[3:-3], repr(each)[1:-1])
        yield from (quote(each, safe=""), html.escape(each))
    encoded = base64.b64encode(value.encode()).decode()
    yield from (encoded, encoded[:16])


def find_leaked_values(text: str) -> list[str]:
    """The surroundings of each value that a text shows."""
    found = []
    for form in {form for value in VALUES for form in forms(value)}:
        at = text.find(form)
        if at >= 0:
            found.append(text[max(0, at - 200) : at + 200])
    return found


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_of(each)
    elif isinstance(value, str):
        yield value


def quoting(request: Object) -> Object:
    """Refuse an object, or warn of it, with all that it holds, in each way that a review has."""
    obj, name = request.get("object") or {}, request.get("name") or ""
    if request["kind"]["kind"] == "Pod":
        name = "refused"
    held = [obj.get("data"), obj.get("stringData"), obj.get("type"), obj.get("spec")]
    decoded = []
    for text in texts_of(held):
        decoded.append(text)
        try:
            decoded.append(base64.b64decode(text, validate=True).decode())
        except ValueError:
            continue
    words = f"found {held} {decoded} {json.dumps(decoded)} {' '.join(decoded)}"
    if name.endswith("warned"):
        return ALLOWED | {"warnings": [f"it holds {each}" for each in decoded] + [words]}
    if not name.endswith("refused"):
        return ALLOWED
    causes = [{"reason": each, "message": f"found {each}", "field": each} for each in decoded]
    details = {"causes": causes, "name": decoded[-1], "kind": decoded[-1], "group": decoded[-1]}
    status = {"message": words, "reason": decoded[-1], "code": 422, "details": details}
    return {"allowed": False, "status": status, "warnings": decoded}


def webhook(cluster: Cluster, server: WebhookServer) -> Object:
    rules = [
        {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "secrets", "pods"]}
    ]
    return {
        "apiVersion": f"{ADMISSION}/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"vaults-{cluster.namespace}"},
        "webhooks": [
            {
                "name": "vaults.konverge.test",
                "clientConfig": server.client_config("quoting"),
                "rules": rules,
                "namespaceSelector": in_namespace(cluster),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
            }
        ],
    }


def in_namespace(cluster: Cluster) -> Object:
    return {"matchLabels": {"kubernetes.io/metadata.name": cluster.namespace}}


def policies(cluster: Cluster) -> Iterator[Object]:
    """Refuse the objects of the owner "policed" and warn of them, quoting `object.data.token`."""
    quoted = {
        "secrets": "'the token is ' + string(object.data.token)",
        "configmaps": "'the token is ' + object.data.token",
        "pods": "'the token is ' + object.spec.containers[0].env[0].value",
    }
    has_token = {"secrets": "has(object.data) && 'token' in object.data"}
    has_token |= {"configmaps": has_token["secrets"], "pods": "has(object.spec.containers[0].env)"}
    for resource, expression in quoted.items():
        for action, part in (("Deny", "refused"), ("Warn", "warned")):
            name = f"{part}-{resource}-{cluster.namespace}"
            rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}
            named = f"has(object.metadata.name) && object.metadata.name.startsWith('policed-{part}')"
            if resource == "pods":
                named = (
                    "has(object.metadata.generateName) && object.metadata.generateName.startsWith('policed-refused')"
                )
            spec = {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule], "namespaceSelector": in_namespace(cluster)},
                "matchConditions": [{"name": "named", "expression": f"{named} && {has_token[resource]}"}],
                "validations": [{"expression": "false", "messageExpression": expression}],
            }
            head = {"apiVersion": f"{ADMISSION}/v1", "metadata": {"name": name}}
            yield {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec}
            yield {
                **head,
                "kind": "ValidatingAdmissionPolicyBinding",
                "spec": {"policyName": name, "validationActions": [action]},
            }


class RefusingCluster:
    """A cluster whose admission quotes what it refuses."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.made: list[Object] = []

    async def add(self, obj: Object) -> None:
        self.made.append(await self.cluster.client.create(obj))

    async def quoted(self, name: str, kind: str = "Secret") -> str:
        """What the server says of an object, unfiltered."""
        metadata = {"name": name, "namespace": self.cluster.namespace}
        data = {"stringData": {"token": MADE}} if kind == "Secret" else {"data": {"token": MADE}}
        transport = self.cluster.new_transport()
        answer = await transport.request(
            "POST",
            f"/api/v1/namespaces/{self.cluster.namespace}/{kind.lower()}s",
            query={"dryRun": "All"},
            headers={"content-type": "application/json"},
            body=json.dumps({"apiVersion": "v1", "kind": kind, "metadata": metadata, **data}).encode(),
            timeout_seconds=60,
        )
        return f"{answer.status} {answer.headers.get('warning')} {answer.body.decode()}"


@asynccontextmanager
async def refusing(cluster: Cluster, folder: Path) -> AsyncIterator[RefusingCluster]:
    """Have admission quote within the block."""
    async with webhook_server(folder) as server:
        server.handlers["quoting"] = quoting
        found = RefusingCluster(cluster)
        refusers = {"hooked": "admission webhook"}
        try:
            if cluster.name == "real":
                refusers["policed"] = "ValidatingAdmissionPolicy"
                for each in policies(cluster):
                    await found.add(each)

                async def is_policed() -> bool:
                    told = [await found.quoted("policed-refused", kind) for kind in ("Secret", "ConfigMap")]
                    told += [await found.quoted("policed-warned", kind) for kind in ("Secret", "ConfigMap")]
                    return all("the token is" in each for each in told)

                await cluster.eventually(is_policed, timeout_seconds=60, describe="the policies are in force")
            await found.add(webhook(cluster, server))

            async def is_hooked() -> bool:
                told = [await found.quoted(f"hooked-{part}", "Secret") for part in ("refused", "warned")]
                return all(MADE in each for each in told)

            await cluster.eventually(is_hooked, timeout_seconds=60, describe="the webhook is asked, and quotes")
            yield found
        finally:
            for each in reversed(found.made):
                await cluster.client.delete(GroupVersionKind.of(each), ObjectKey.of(each))


class Outputs:
    """All that is shown, by where."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, where: str, text: object) -> None:
        self.texts[where] = self.texts.get(where, "") + str(text)

    def leaks(self) -> str:
        """Where values are shown, and among what."""
        return "\n\n".join(
            f"{where}: {each}" for where, text in self.texts.items() for each in find_leaked_values(text)[:3]
        )


@asynccontextmanager
async def running(outputs: Outputs, name: str, command: list[str], environment: dict[str, str]) -> AsyncIterator[None]:
    """Run a command beside the block; all of its output is among the outputs afterwards."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "konverge", *command, env=environment, stdout=pipe, stderr=pipe
    )
    reading = asyncio.create_task(process.communicate())
    try:
        yield
    finally:
        process.terminate()
        try:
            shown = await asyncio.wait_for(asyncio.shield(reading), 60)
        except TimeoutError:
            process.kill()
            shown = await reading
        for where, text in zip(("stdout", "stderr"), shown, strict=True):
            outputs.add(f"{name} {where}", text.decode())


async def condition(cluster: Cluster, gvk: GroupVersionKind, name: str, type: str, words: str) -> Condition | None:
    """The condition of that type, once it has these words."""
    found = find_condition(await cluster.client.get(gvk, ObjectKey(cluster.namespace, name)), type)
    assert found is not None, f"no condition {type}"
    assert words in found.message, found.message
    return found


def owner(cluster: Cluster, gvk: GroupVersionKind, name: str) -> Object:
    metadata = {"name": name, "namespace": cluster.namespace}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {}}


async def all_refused(cluster: Cluster, refusers: list[str]) -> None:
    """Wait until each refusal is in a condition, with who refuses."""
    for refuser in refusers:
        words = {"policed": "ValidatingAdmissionPolicy '", "hooked": 'webhook "vaults.konverge.test"'}[refuser]
        for gvk, type, expected in (
            (VAULT, "MadeReady", words),
            (VAULT, "CopiedReady", "the server rejected the request"),
            (VAULT, "InvalidReady", "spec.type"),
            # The embedded cluster's controllers keep to themselves why there is no Pod.
            (VAULT, "PodsReady", words if cluster.name == "real" else "Waiting"),
            (CLERK, "Ready", words),
        ):
            await cluster.eventually(
                partial(condition, cluster, gvk, refuser, type, expected),
                timeout_seconds=60,
                describe=f"{gvk.kind} {refuser} has {type} with {expected}",
            )
    await cluster.eventually(partial(condition, cluster, CRATE, "hooked", "Ready", "hooked"), timeout_seconds=60)


async def test_no_value_of_a_secret_that_the_server_quotes_is_shown_anywhere(
    cluster: Cluster, konverge: Konverge, environment: dict[str, str], tmp_path: Path
) -> None:
    pytest.importorskip("konverge_box")
    refusers = ["hooked", "policed"] if cluster.name == "real" else ["hooked"]
    outputs, kubeconfig, port, token = (
        Outputs(),
        await cluster.write_kubeconfig(),
        find_unused_port(),
        tmp_path / "token",
    )
    token.write_text("a-reader-of-metrics")
    box = tmp_path / "box.yaml"
    box.write_text(yaml.safe_dump(BOX))
    definition = yaml.safe_load((await in_thread(konverge, "crd", box)).stdout)
    await cluster.install(crd_manifest(Vault), crd_manifest(Clerk), definition)
    source = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "source", "namespace": cluster.namespace}}
    await cluster.client.create({**source, "stringData": {"token": GIVEN, "type": TYPED}})
    common = ["--kubeconfig", str(kubeconfig), "--namespace", cluster.namespace]
    serving = ["--metrics", f"127.0.0.1:{port}", "--debug-page", "--metrics-token-file", str(token), "--trace"]
    owners = [(gvk, refuser) for gvk in (VAULT, CLERK) for refuser in refusers] + [(CRATE, "hooked")]
    async with refusing(cluster, tmp_path):
        for gvk, name in owners:
            await cluster.client.create(owner(cluster, gvk, name))
        async with (
            running(outputs, "run", ["run", str(FILE), *common, *serving], environment),
            running(outputs, "box run", ["box", "run", str(box), *common, "--verbose"], environment),
        ):
            await all_refused(cluster, refusers)
            headers = {"authorization": f"Bearer {token.read_text()}"}
            async with aiohttp.ClientSession(headers=headers) as session:
                for path in ("/metrics", "/debug/"):
                    async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                        assert answer.status == 200
                        outputs.add(path, await answer.text())
        for gvk, name in owners:
            file = box if gvk == CRATE else FILE
            outputs.add("conditions", json.dumps(await cluster.client.get(gvk, ObjectKey(cluster.namespace, name))))
            for command, *more in (
                ("diff",),
                ("explain",),
                ("preview",),
                ("diff", "-o", "json"),
                ("explain", "-o", "json"),
            ):
                told = (command, file, f"{gvk.kind.lower()}/{name}", "-n", cluster.namespace, *more)
                done = await in_thread(konverge, *told, "--kubeconfig", kubeconfig)
                outputs.add(command, f"{told} {done.returncode} {done.stdout} {done.stderr}")
        events = (await cluster.client.list(EVENT, namespace=cluster.namespace)).items
        # Those of the cluster's own controllers are theirs to answer for.
        outputs.add(
            "events", json.dumps([each for each in events if each.get("reportingController") in ("vaults", "boxed")])
        )

    assert not outputs.leaks(), outputs.leaks()
    for where, words in (
        ("run stdout", "the API server warns"),
        ("run stdout", "the server refuses"),
        ("run stdout", "reconcile vault"),
        ("box run stderr", "the API server warns"),
        ("/metrics", "konverge_"),
        ("/debug/", "hooked"),
        ("events", "CreatedSecret"),
        ("diff", "the server rejected the request"),
        ("explain", "the server rejected the request"),
        ("conditions", "the server rejected the request"),
        ("conditions", r"because of admission webhook \"vaults.konverge.test\"."),
    ):
        assert words in outputs.texts[where], f"{where} has not {words!r}: {outputs.texts[where][:1000]}"


async def in_thread(konverge: Konverge, *arguments: Any) -> Any:
    """Run a command, and let the cluster go on meanwhile."""
    return await anyio.to_thread.run_sync(partial(konverge, *arguments))
