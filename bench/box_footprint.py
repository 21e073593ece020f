"""The cost of fifty idle custom resources of a box: ``python -m bench.box_footprint``.

A box with 50 custom resources runs in its own process on a real control plane, with 20 objects of each custom resource
and two children of each object. The output is its memory when all are Ready, and its processor time in an idle minute.
With ``--files`` each custom resource is in its own box file, and one process runs all of them: then every box has its
own caches.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from bench.box_program import USER_AGENT
from bench.w1.bench_cluster import count_by_verb
from bench.w1.measured_process import MeasuredProcess
from konverge._internal.client.connect import connect
from konverge.client import Client
from konverge.clock import SystemClock
from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind, find_condition
from konverge_box._internal.file import load_box
from konverge_box._internal.runtime import build_box_operator
from konverge_cluster._internal.testing.audit_requests import read_audit_log
from konverge_cluster._internal.testing.polling import eventually
from konverge_cluster.controlplane import RealCluster

_GOAL_MEGABYTES = 200
_GOAL_PERCENT = 1.0
_REST_SECONDS = 60.0
_NAMESPACE = "boxes"

_SCHEMA = {"spec": {"properties": {"text": {"type": "string"}, "size": {"type": "integer"}}}}
_STEPS: dict[str, Any] = {
    "mutation": [{"field": "spec.size", "default": 1}],
    "validation": [{"field": "spec.size", "max": 9, "message": "too large"}],
    "onReconcile": {
        "configMaps": [{"data": {"text": "{{ spec.text }}", "size": "{{ spec.size }}"}}],
        "services": [{"port": 80, "targetPort": 8080}],
    },
    "status": {"fields": [{"path": "address", "value": "{{ children.service.spec.clusterIP | default('') }}"}]},
}


def _kind(number: int) -> GroupVersionKind:
    return GroupVersionKind("bench.konverge.dev", "v1", f"Box{number:02}")


def _texts(count: int, *, apart: bool) -> list[str]:
    """Return the text of the box, or of several boxes."""
    crds = {
        f"box{number:02}": {
            "resource": {"apiVersion": _kind(number).api_version, "kind": _kind(number).kind, "schema": _SCHEMA},
            # Each custom resource has its own children.
            **_STEPS,
            "onReconcile": {
                kind: [{"name": f"{{{{ metadata.name }}}}-{number:02}", **each} for each in resources]
                for kind, resources in _STEPS["onReconcile"].items()
            },
        }
        for number in range(count)
    }
    files = [{name: declared} for name, declared in crds.items()] if apart else [crds]
    return [
        yaml.safe_dump(
            {
                "apiVersion": "konverge.dev/v1alpha1",
                "kind": "OperatorBox",
                "metadata": {"name": f"boxes-{number}"},
                "spec": {"crds": each},
            },
            sort_keys=False,
        )
        for number, each in enumerate(files)
    ]


async def _load(client: Client, texts: list[str], boxes: int, objects: int) -> None:
    clock = SystemClock()
    for text in texts:
        for cls in build_box_operator(load_box(text)).defined_resources:
            await client.apply(crd_manifest(cls), field_manager="bench")
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    waiting = iter([(box, number) for box in range(boxes) for number in range(objects)])

    async def work() -> None:
        for box, number in waiting:
            gvk = _kind(box)

            async def is_served(gvk: GroupVersionKind = gvk) -> bool:
                await client.list(gvk, namespace=_NAMESPACE)
                return True

            if number == 0:
                await eventually(is_served, clock=clock, timeout_seconds=60)
            await client.create(
                {
                    "apiVersion": gvk.api_version,
                    "kind": gvk.kind,
                    "metadata": {"name": f"one-{number:02}", "namespace": _NAMESPACE},
                    "spec": {"text": "Hello"},
                }
            )

    await work()


async def _are_ready(client: Client, boxes: int, objects: int) -> bool:
    for box in range(boxes):
        found = (await client.list(_kind(box), namespace=_NAMESPACE)).items
        ready = [find_condition(each, "Ready") for each in found]
        if sum(each is not None and each.status == "True" for each in ready) < objects:
            return False
    return True


async def _run(boxes: int, objects: int, *, apart: bool) -> None:
    texts = _texts(boxes, apart=apart)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"box-{number:02}.yaml" for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        async with (
            RealCluster() as cluster,
            connect(cluster.kubeconfig, user_agent="bench-loader", env={}) as client,
        ):
            await _load(client, texts, boxes, objects)
            start = cluster.audit_log.stat().st_size
            async with MeasuredProcess("bench.box_program", str(cluster.kubeconfig), *map(str, files)) as subject:
                begin = subject.go()
                clock = SystemClock()
                await subject.wait_for(
                    eventually(lambda: _are_ready(client, boxes, objects), clock=clock, timeout_seconds=600)
                )
                ready = time.monotonic() - begin
                await subject.wait_until_quiet()
                worked, rested = subject.cpu_seconds, cluster.audit_log.stat().st_size
                await asyncio.sleep(_REST_SECONDS)
                idle = (subject.cpu_seconds - worked) / _REST_SECONDS * 100
                memory, peak = subject.megabytes, subject.peak_megabytes
            requests = [each for each in read_audit_log(cluster.audit_log, start) if each.user_agent == USER_AGENT]
            resting = [each for each in read_audit_log(cluster.audit_log, rested) if each.user_agent == USER_AGENT]
    counted: Counter[str] = count_by_verb(requests)
    print(f"{boxes} custom resources in {len(texts)} box files, {objects} objects of each with 2 children, one process")
    print(f"  to all Ready: {ready:.1f} s, {worked:.1f} s of CPU; requests {dict(counted.most_common())}")
    print(f"  idle: {memory:.0f} MB (goal: <= {_GOAL_MEGABYTES}), at most {peak:.0f} MB")
    print(f"  idle: {idle:.2f} % of a core over {_REST_SECONDS:g} s (goal: <= {_GOAL_PERCENT:g})")
    print(f"  idle: requests {dict(count_by_verb(resting))}")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.box_footprint", description="Memory and CPU of boxes at idle."
    )
    parser.add_argument("--boxes", type=int, default=50, help="how many custom resources (default: 50)")
    parser.add_argument("--objects", type=int, default=20, help="how many objects of each (default: 20)")
    parser.add_argument("--files", action="store_true", help="a file for each custom resource")
    arguments = parser.parse_args()
    asyncio.run(_run(arguments.boxes, arguments.objects, apart=arguments.files))


if __name__ == "__main__":
    main()
