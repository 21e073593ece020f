"""`konverge test`: what it finds in operators with a planted error, and that it finds nothing in right ones."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from konverge import (
    Component,
    ComponentBuilder,
    Metadata,
    Operator,
    OwnerContext,
    Result,
    TerminalError,
    custom_resource,
    options,
)
from konverge.errors import ConfigurationError
from konverge.kube import Object, build_owner_reference
from konverge.primitives import ConfigMap, Static
from konverge_cluster._internal.cli.demo import find_example_folder
from konverge_cluster._internal.testing.smoke_run import OwnerReport, list_owners, run_owner

pytestmark = pytest.mark.embedded

README = Path(__file__).parents[5] / "README.md"


@dataclass
class KeySpec:
    text: str = "a"


@custom_resource(group="smoke.konverge.test", version="v1")
@dataclass
class Key:
    metadata: Metadata
    spec: KeySpec


@custom_resource(group="smoke.konverge.test", version="v1")
@dataclass
class Lock:
    metadata: Metadata
    spec: KeySpec


def key(text: str = "a") -> Object:
    return {
        "apiVersion": "smoke.konverge.test/v1",
        "kind": "Key",
        "metadata": {"name": "one", "namespace": "elsewhere"},
        "spec": {"text": text},
    }


def config_map(owner: Key, data: dict[str, str]) -> Component:
    metadata = {"name": owner.metadata.name, "namespace": owner.metadata.namespace}
    return (
        ComponentBuilder("map", condition_type="MapReady")
        .with_resource(ConfigMap({"metadata": metadata, "data": data}))
        .build()
    )


def right(operator: Operator) -> None:
    operator.manages(Key, lambda owner: config_map(owner, {"text": owner.spec.text}))


def never_steady(operator: Operator) -> None:
    numbers = count()
    operator.manages(Key, lambda owner: config_map(owner, {"number": str(next(numbers))}))


def failing(operator: Operator) -> None:
    operator.manages(Key, lambda owner: config_map(owner, {"not a key!": ""}))


def unknown_kind(operator: Operator) -> None:
    def build(owner: Key) -> Component:
        thing = Static({"apiVersion": "absent.konverge.test/v1", "kind": "Thing", "metadata": {"name": "one"}})
        return ComponentBuilder("thing", condition_type="ThingReady").with_resource(thing).build()

    operator.manages(Key, build)


def writes_each_time(operator: Operator) -> None:
    @operator.reconciles(Key)
    async def reconcile(owner: Key, ctx: OwnerContext) -> None:
        metadata = {
            "name": "one",
            "namespace": owner.metadata.namespace,
            "ownerReferences": [build_owner_reference(ctx.owner)],
        }
        await ctx.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="keys")


def leaves_something(operator: Operator) -> None:
    @operator.reconciles(Key)
    async def reconcile(owner: Key, ctx: OwnerContext) -> None:
        metadata = {"name": "left", "namespace": owner.metadata.namespace}
        await ctx.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="keys")


def leaves_something_in_the_cluster(operator: Operator) -> None:
    def build(owner: Key) -> Component:
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "left"}}
        resource = Static({**priority, "value": 5}, cluster_scoped=True)
        return ComponentBuilder("priority", condition_type="PriorityReady").with_resource(resource).build()

    operator.manages(Key, build)


def never_deletes(operator: Operator) -> None:
    right(operator)

    @operator.finalizes(Key)
    async def clean_up(owner: Key, ctx: OwnerContext) -> Result | None:
        return Result(requeue_after=timedelta(seconds=30))


def ends(operator: Operator) -> None:
    right(operator)

    @operator.finalizes(Lock)
    async def clean_up(owner: Lock, ctx: OwnerContext) -> None: ...


def refuses(operator: Operator) -> None:
    @operator.reconciles(Key)
    async def reconcile(owner: Key, ctx: OwnerContext) -> None:
        raise TerminalError("spec.text: expected b")


def run(register: Callable[[Operator], None], owner: Object | None = None) -> OwnerReport:
    operator = Operator("keys")
    register(operator)
    return run_owner(operator, key() if owner is None else owner, [])


def test_a_right_operator_passes() -> None:
    assert run(right) == OwnerReport(run(right).owner, "True Healthy")


def test_an_unowned_object_may_outlive_its_owner() -> None:
    def keeps(operator: Operator) -> None:
        def build(owner: Key) -> Component:
            metadata = {"name": "kept", "namespace": owner.metadata.namespace}
            kept = ConfigMap({"metadata": metadata, "data": {"text": owner.spec.text}})
            return (
                ComponentBuilder("map", condition_type="MapReady")
                .with_resource(kept, options.unowned())
                .with_resource(ConfigMap({"metadata": metadata | {"name": "owned"}, "data": {}}))
                .build()
            )

        operator.manages(Key, build)

    assert run(keeps) == OwnerReport(run(keeps).owner, "True Healthy")


@pytest.mark.parametrize(
    ("register", "problem"),
    [
        (never_steady, "not steady within 15 minutes: "),
        (failing, "Ready is False (Error): "),
        (unknown_kind, "Ready is False (Error): "),
        (writes_each_time, "after a restart, expected no write, found patch /api/v1/namespaces/test/configmaps/one"),
        (leaves_something, "deletion: left behind: /api/v1/namespaces/test/configmaps/left"),
        (
            leaves_something_in_the_cluster,
            "deletion: left behind: /apis/scheduling.k8s.io/v1/priorityclasses/left",
        ),
        (never_deletes, "deletion: not gone within 15 minutes: "),
        (ends, "the operator ends: "),
        (refuses, "Ready is False (Error): The reconcile failed: spec.text: expected b"),
    ],
)
def test_a_planted_error_is_found(register: Callable[[Operator], None], problem: str) -> None:
    report = run(register)

    assert [found for found in report.problems if found.startswith(problem)], report


def test_an_owner_that_the_server_rejects_is_no_failure() -> None:
    report = run(right, key() | {"spec": {"text": 5}})

    assert report.problems == ()
    assert "spec.text" in report.rejection


def test_owners_of_files_replace_the_samples_of_their_kind() -> None:
    operator = Operator("keys")
    right(operator)

    assert list_owners(operator, [key("mine")], 4) == [key("mine")]
    assert len(list_owners(operator, [], 2)) == 2


@pytest.mark.parametrize(
    ("owner", "problem"),
    [
        (
            {"apiVersion": "v1", "kind": "Pod"},
            "expected owners of the operator (smoke.konverge.test/v1 Key), found v1 Pod",
        ),
        ({"kind": "Key"}, "found another object"),
        ({"apiVersion": "smoke.konverge.test/v2", "kind": "Key"}, "found smoke.konverge.test/v2 Key"),
        ({"apiVersion": "smoke.konverge.test/v1", "kind": "Key"}, "metadata.name: expected a name"),
        ({"apiVersion": "smoke.konverge.test/v1", "kind": "Key", "metadata": {"name": 5}}, "metadata.name: expected"),
    ],
)
def test_an_object_that_is_no_owner_is_named(owner: Object, problem: str) -> None:
    operator = Operator("keys")
    right(operator)

    with pytest.raises(ConfigurationError, match=re.escape(problem)):
        list_owners(operator, [owner], 4)


@custom_resource(group="smoke.konverge.test", version="v1", scope="Cluster")
@dataclass
class Realm:
    metadata: Metadata
    spec: KeySpec


def test_an_owner_of_the_cluster_needs_no_namespace_and_one_of_a_namespace_gets_it() -> None:
    def build(owner: Realm) -> Component:
        configuration = ConfigMap({"metadata": {"name": "one", "namespace": "default"}, "data": {"a": "b"}})
        return ComponentBuilder("map", condition_type="MapReady").with_resource(configuration).build()

    operator = Operator("realms")
    operator.manages(Realm, build)
    (owner,) = list_owners(operator, [], 1)
    without_namespace = key() | {"metadata": {"name": "one"}}

    assert run_owner(operator, owner, []).problems == ()
    assert run(right, without_namespace).problems == ()


def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "konverge", "test", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.slow
def test_the_command_reports_each_owner_and_the_sum() -> None:
    example = find_example_folder()
    done = run_command(example / "operator.py", "--sample", example / "webapp.yaml")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("passed    WebApp {")
    assert done.stdout.endswith("1 owner: 1 passed, 0 failed, 0 rejected\n")


@pytest.mark.slow
def test_samples_find_what_the_schema_forgets(tmp_path: Path) -> None:
    (tmp_path / "sites.py").write_text(README.read_text().partition("```python\n")[2].partition("```")[0])

    done = run_command(tmp_path / "sites.py")

    assert (done.returncode, done.stderr) == (1, "")
    assert "failed    Site {image: ''}" in done.stdout
    assert "spec.template.spec.containers[0].image: Required value" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("absent.py",), 3, "absent.py: no such file"),
        (("box.yaml",), 3, "box.yaml: expected a Python file, found a box; use konverge box simulate"),
        (("absent.py", "--samples", "0"), 2, "--samples"),
        (("absent.py", "--sample", "absent.yaml"), 3, "absent.yaml: No such file"),
    ],
)
def test_what_cannot_be_tested_is_named(arguments: tuple[str, ...], code: int, problem: str) -> None:
    done = run_command(*arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert problem in done.stderr
