"""Hostile input in a box or its custom resources is reported with its path, and does not affect other objects.

The tests of each part cover its limits; docs/box-parity.md lists them. Here, all kinds of hostile input run together in
one process, with an independent custom resource.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
import yaml
from click.testing import CliRunner

from konverge._internal.cli.diff_text import format_diff
from konverge._internal.operator.dry_run import dry_run_owner
from konverge._internal.operator.owner_context import OperatorRun
from konverge._internal.runtime import Process
from konverge.crd import find_definition
from konverge.kube import GroupVersionKind, find_condition
from konverge.observability import ObservabilityOptions
from konverge.operator import RunOptions
from konverge_box._internal.cli.box_render import box_render
from konverge_box._internal.file import load_box
from konverge_box._internal.runtime import BoxController
from konverge_box.providers import ProviderPool, ProviderRegistry
from konverge_cluster.testing import Cluster
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider
from tests.box.running.box_harness import (
    BOOK,
    GROUP,
    SECRET,
    BoxHarness,
    build_box_text,
    build_config_map,
    build_custom_resource,
)

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")

MANY = list(range(2_000))
HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "Loop": (
        {
            "onReconcile": {
                "configMaps": [
                    build_config_map(a="{% for a in spec.l %}{% for b in spec.l %}x{% endfor %}{% endfor %}")
                ]
            }
        },
        {"l": MANY},
        "Error",
        "spec.crds.loop.onReconcile.configMaps[0]",
    ),
    "Text": (
        {"onReconcile": {"configMaps": [build_config_map(a="{{ spec.text ~ spec.text }}")]}},
        {"text": "a" * 1_000_000},
        "Error",
        "spec.crds.text.onReconcile.configMaps[0]",
    ),
    "Message": (
        {"validation": [{"field": "spec.text", "equals": "", "message": "{{ spec.text }}"}]},
        {"text": "a" * 1_000_000},
        "ValidationFailed",
        "spec.text: aaa",
    ),
    "Items": (
        {"onReconcile": {"configMaps": [{**build_config_map("a-{{ item }}"), "forEach": {"field": "spec.l"}}]}},
        {"l": MANY},
        "Error",
        "spec.crds.items.onReconcile.configMaps[0].forEach",
    ),
    "Place": (
        {"external": [{"name": "machine", "url": "http://169.254.169.254/{{ metadata.name }}"}]},
        {},
        "Error",
        "spec.crds.place.external: machine: 169.254.169.254 may not be reached",
    ),
    "Pattern": (
        {"validation": [{"field": "spec.text", "regex": "^(a+)+$", "message": "no"}]},
        {"text": "a" * 200_000 + "!"},
        "ValidationFailed",
        "spec.text: no",
    ),
}
"""By kind: the steps of a custom resource, the spec of its object, and the message of its Ready condition."""


@pytest.mark.slow
@pytest.mark.embedded  # the hostile input never reaches a server
@pytest.mark.parametrize("cluster_kind", ["embedded"])
async def test_what_is_hostile_is_told_with_its_path_while_others_are_served(cluster: Cluster) -> None:
    library = BoxHarness(cluster)
    crds: dict[str, Any] = {kind.lower(): build_custom_resource(kind, **steps) for kind, (steps, *_) in HOSTILE.items()}
    crds["book"] = build_custom_resource("Book", onReconcile={"configMaps": [build_config_map(text="{{ spec.text }}")]})
    crds["hang"] = build_custom_resource("Hang", providers={"cloud": [{"kind": "Machine", "name": "m"}]})
    text = build_box_text(**crds).replace("spec:\n", "spec:\n  providers: {cloud: {}}\n", 1)
    provider, forever = FakeCloudProvider(FakeCloud()), asyncio.Event()
    provider.during = lambda request: forever.wait()
    box = BoxController(load_box(text), pool=ProviderPool(ProviderRegistry.from_providers([provider])))
    async with library.running(box):
        await library.create(GroupVersionKind(GROUP, "v1", "Hang"), "hang")
        await cluster.eventually(lambda: provider.calls or None, describe="the provider is called")
        for kind, (_, spec, _, _) in HOSTILE.items():
            await library.create(GroupVersionKind(GROUP, "v1", kind), "bad", **spec)
        await library.create(BOOK, "good", text="first")

        await library.wait_for_condition(BOOK, "good", "Healthy")
        for kind, (_, _, reason, message) in HOSTILE.items():
            ready = await library.wait_for_condition(
                GroupVersionKind(GROUP, "v1", kind), "bad", reason, message=message
            )
            assert len(ready.message) < 33_000
        await library.change(BOOK, "good", text="second")
        await library.wait_for_data("good", text="second")
        [run] = box.active.runs
        assert {name for name, health in run.health.resources.items() if not health.is_degraded} >= {"book", "hang"}
        forever.set()


PASSWORD = "hunter2-of-the-database"
READ = "{{ cross.db.data.password }}"
USES: dict[str, dict[str, Any]] = {
    "Stored": {"onReconcile": {"secrets": [{"name": "stored", "stringData": {"url": f"db://{READ}@db"}}]}},
    "Field": {"status": {"fields": [{"path": "password", "value": READ}, {"path": "found", "value": "yes"}]}},
    "Figure": {"onReconcile": {"configMaps": [build_config_map("figure", a="{{ cross.db.data.password | toInt }}")]}},
    "Named": {"onReconcile": {"configMaps": [build_config_map(READ, a="b")]}},
    "Repeated": {
        "onReconcile": {
            "configMaps": [{**build_config_map("{{ item }}"), "forEach": {"field": "cross.db.data.password"}}]
        }
    },
    "Held": {
        "onReconcile": {
            "configMaps": [
                {**build_config_map("held"), "waitFor": [{"field": "cross.db.data.password", "equals": "other"}]}
            ]
        }
    },
    "Called": {"external": [{"name": "asked", "url": f"http://169.254.169.254/{READ}"}]},
    "Kept": {"providers": {"cloud": [{"kind": "Machine", "name": "m", "spec": {"zone": READ}}]}},
    "Given": {"providers": {"cloud": [{"kind": "Machine", "name": "m", "spec": {"password": READ}}]}},
    "Refused": {"onReconcile": {"services": [{"name": "refused", "port": 80, "manifest": {"spec": {"type": READ}}}]}},
    "Copied": {"onReconcile": {"configMaps": [build_config_map("copied", a=READ)]}},
    "Absent": {"onReconcile": {"configMaps": [build_config_map("absent", a="{{ cross.db.data.password.hunter }}")]}},
    "Drawn": {"onCreate": {"secrets": [{"name": "drawn", "once": True, "stringData": {"key": "{{ randomHex(16) }}"}}]}},
}
"""By kind: the use of a value of a Secret in its steps. The Ready conditions distinguish them."""

DATABASE = {"apiVersion": "v1", "kind": "Secret", "as": "db", "selector": {"name": "db"}}


def secret_uses(provider: str = "{}") -> str:
    crds: dict[str, Any] = {
        kind.lower(): build_custom_resource(kind, cross=[DATABASE], **steps) for kind, steps in USES.items()
    }
    return build_box_text(**crds).replace("spec:\n", f"spec:\n  providers: {{cloud: {provider}}}\n", 1)


class Outputs:
    """Collects every visible output of a run as one text."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.run: OperatorRun | None = None

    @asynccontextmanager
    async def collect(self, run: OperatorRun, process: Process) -> AsyncIterator[None]:
        self.run = run
        yield

    def add(self, *outputs: object) -> None:
        self.texts += map(str, outputs)

    def add_metrics(self) -> None:
        assert self.run is not None
        assert self.run.metrics is not None
        self.add(prometheus_client.generate_latest(self.run.metrics.registry).decode())


def encodings(*values: str) -> list[str]:
    return [each for value in values for each in (value, base64.b64encode(value.encode()).decode())]


async def test_the_value_of_a_secret_is_in_nothing_that_a_run_shows(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    library, outputs = BoxHarness(cluster), Outputs()
    pool = ProviderPool(ProviderRegistry.from_providers([FakeCloudProvider(FakeCloud())]))
    box = BoxController(load_box(secret_uses()), pool=pool)
    box.operator.runs_in_background(outputs.collect)
    metadata = {"name": "db", "namespace": cluster.namespace}
    await cluster.client.create(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": PASSWORD}}
    )
    serving = ObservabilityOptions(metrics_address="127.0.0.1:0", probe_address="0", per_owner_conditions=True)
    options = RunOptions(namespaces=(cluster.namespace,), grace=timedelta(seconds=5), observability=serving)
    async with library.running(box, options):
        kinds = {kind: GroupVersionKind(GROUP, "v1", kind) for kind in USES}
        for gvk in kinds.values():
            await library.create(gvk, "one")

        async def all_have_ready() -> bool:
            found = [find_condition(await library.get(gvk, "one"), "Ready") for gvk in kinds.values()]
            return None not in found

        await cluster.eventually(all_have_ready, describe="each has a condition Ready")
        await library.wait_until_quiet()
        stored, drawn = await library.get(SECRET, "stored"), await library.get(SECRET, "drawn")
        outputs.add_metrics()
        outputs.add(*(run.build_debug_rows() for run in box.active.runs))
        for gvk in kinds.values():
            outputs.add(json.dumps(await library.get(gvk, "one")))
        outputs.add(json.dumps((await cluster.client.list(EVENT, namespace=cluster.namespace)).items))
    for registration in box.operator.registered.classes:
        owner = await library.get(find_definition(registration.cls).gvk, "one")
        indexes = box.operator.registered.indexes
        dry_run = await dry_run_owner(registration, owner, cluster.client, indexes=indexes, clock=cluster.clock)
        outputs.add(dry_run, *format_diff(dry_run))
    outputs.add(caplog.text)

    key = base64.b64decode(drawn["data"]["key"]).decode()
    assert base64.b64decode(stored["data"]["url"]).decode() == f"db://{PASSWORD}@db"
    text = "\n".join(outputs.texts)
    assert [text[max(0, text.find(each) - 200) :][:400] for each in encodings(PASSWORD, key) if each in text] == []
    assert "konverge_box_passes_total" in text
    assert "spec.crds.figure.onReconcile" in text


@pytest.mark.slow
@pytest.mark.parametrize("kind", USES)
def test_the_value_of_a_secret_is_in_nothing_that_is_rendered(kind: str, tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.yaml" for name in ("box", "object", "given")}
    files["box"].write_text(secret_uses("{required: false}"))
    owner = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "one", "namespace": "default"}}
    files["object"].write_text(yaml.safe_dump(owner))
    metadata = {"name": "db", "namespace": "default"}
    files["given"].write_text(
        yaml.safe_dump(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": PASSWORD}}
        )
    )

    found = CliRunner().invoke(
        box_render, [str(files["box"]), "--object", str(files["object"]), "--given", str(files["given"])]
    )

    assert "steps:" in found.output
    assert [each for each in encodings(PASSWORD) if each in found.output + found.stderr] == []
