"""`konverge diff`: what would change, who owns it now, what is not compared, and nothing written; on both clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from konverge._internal.cli.diff_text import format_change, format_value
from konverge._internal.cli.exit_codes import find_refusal
from konverge._internal.cli.owner_arguments import find_owner
from konverge.crd import find_definition
from konverge.dry_run import FieldChange, ObjectChange
from konverge.errors import ConfigurationError, ForbiddenError, NotFoundError, ReconcileError
from konverge.kube import Object, ObjectKey, build_owner_reference
from tests.cli.conftest import Konverge
from tests.cli.stuck_operator import Ward, operator
from tests.cli.stuck_owner import CONFIG_MAP, FILE, StuckOwner, ward
from tests.cli.test_bad_input import check_one_line, find_unused_port, kubeconfig

both = [pytest.mark.anyio, pytest.mark.real_time]


class TestOnBothClusters:
    pytestmark = both

    async def test_nothing_to_change_is_0_and_what_is_blocked_is_named(self, stuck: StuckOwner) -> None:
        await stuck.run_operator()

        done = await stuck.run("diff")

        name = f"v1/ConfigMap/{stuck.cluster.namespace}/east"
        assert (done.returncode, done.stderr) == (0, "")
        assert f"! halts at {name}-account: waiting for {name}-account\n" in done.stdout
        assert f"! not compared: {name}-outbox, v1/Service/" in done.stdout
        assert "! has not begun: Prerequisite not met" in done.stdout
        assert "would be" not in done.stdout
        assert "pages" not in done.stdout.replace("PagesReady", "")

    @pytest.mark.slow
    async def test_each_field_with_both_values_is_1(self, stuck: StuckOwner) -> None:
        await stuck.run_operator()
        await stuck.change(colour="green", image="konverge.test/never-ready:2")

        done = await stuck.run("diff", is_started=True)

        assert (done.returncode, done.stderr) == (1, "")
        assert '.data.colour: "blue" → "green"\n' in done.stdout
        container = '.spec.template.spec.containers[name="main"]'
        assert f'{container}.image: "konverge.test/never-ready:1" → "konverge.test/never-ready:2"\n' in done.stdout
        assert done.stdout.index("east-settings") < done.stdout.index("east-pages")

    async def test_fields_that_are_taken_from_another_writer_are_marked(self, stuck: StuckOwner) -> None:
        await stuck.run_operator()
        await stuck.force_settings()

        done = await stuck.run("diff")

        assert done.returncode == 1
        assert '.data.colour: "red" → "blue"  (taken over from painter (Apply, since 20' in done.stdout

    async def test_objects_to_be_deleted_stand_behind_those_that_are_applied(self, stuck: StuckOwner) -> None:
        owner = await stuck.cluster.client.get(find_definition(Ward).gvk, ObjectKey(stuck.cluster.namespace, "east"))
        metadata: Object = {"name": "east-old", "namespace": stuck.cluster.namespace}
        metadata["ownerReferences"] = [build_owner_reference(owner)]
        await stuck.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

        changes = await self._changes(stuck)

        told = [(change["action"], change["identity"].rpartition("/")[2]) for change in changes]
        assert told == [
            ("create", "east-settings"),
            ("create", "east-access"),
            ("delete", "east-old"),
            ("create", "east-pages"),
            ("create", "east-pages"),
        ]
        assert await stuck.cluster.client.get(CONFIG_MAP, ObjectKey(stuck.cluster.namespace, "east-old"))

    async def test_an_owner_in_a_file_is_compared_as_if_it_were_applied(self, stuck: StuckOwner) -> None:
        await stuck.run_operator()
        before = await stuck.list_versions()

        done = await stuck.run("diff", str(stuck.write_owner_file(colour="green")))

        assert (done.returncode, done.stderr) == (1, "")
        assert '.data.colour: "blue" → "green"' in done.stdout
        assert "would be created" not in done.stdout
        assert await stuck.list_versions() == before

    async def test_an_owner_that_is_nowhere_but_in_a_file_is_all_new(self, stuck: StuckOwner) -> None:
        file = stuck.write_owner_file()
        file.write_text(file.read_text().replace("east", "west"))

        done = await stuck.run("diff", str(file))

        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.count("would be created") == 4
        assert '.data.colour: "blue"\n' in done.stdout

    @pytest.mark.slow
    async def test_a_value_of_a_secret_only_differs(self, stuck: StuckOwner) -> None:
        await stuck.run_operator()
        await stuck.change(password="swordfish")

        texts = [(await stuck.run(*command)).stdout for command in (("diff",), ("diff", "ward/east", "-o", "yaml"))]

        assert ".data.password: differs (hidden)" in texts[0]
        assert "before: (hidden)" in texts[1]
        for value in ("hunter2", "swordfish", "c3dvcmRmaXNo", "aHVudGVyMg=="):
            assert all(value not in text for text in texts)

    async def test_the_server_gets_reads_and_dry_runs_alone(self, stuck: StuckOwner) -> None:
        await stuck.run_operator()
        await stuck.force_settings()
        await stuck.change(colour="green", password="swordfish")
        before = await stuck.list_versions()

        done = await stuck.run("diff")

        assert done.returncode == 1
        assert stuck.list_verbs("diff") == {"get", "patch"}
        assert await stuck.list_versions() == before

    async def test_without_an_owner_all_are_compared(self, stuck: StuckOwner) -> None:
        west = ward(stuck.cluster.namespace)
        west["metadata"]["name"] = "west"
        await stuck.cluster.client.create(west)

        done = await stuck.run("diff", "-n", stuck.cluster.namespace)

        assert done.returncode == 1
        assert "Ward " + stuck.cluster.namespace + "/east\n" in done.stdout
        assert "Ward " + stuck.cluster.namespace + "/west\n" in done.stdout

    async def test_a_component_that_fails_is_trouble_and_the_others_are_compared(self, stuck: StuckOwner) -> None:
        await stuck.change(broken=True)

        done = await stuck.run("diff")

        assert done.returncode == 5
        assert "! fails: failed to mutate resource" in done.stdout
        assert "the author's own mistake" in done.stdout
        assert done.stderr.startswith("konverge: not compared: failed to mutate resource")
        assert done.stderr.count("\n") == 1
        assert "east-pages  would be created" in done.stdout

    @pytest.mark.slow
    async def test_an_owner_that_does_not_exist(self, stuck: StuckOwner) -> None:
        done = await stuck.run("diff", "ward/eats")

        check_one_line(done, 5, f'Ward "eats" not found in namespace {stuck.cluster.namespace}; existing: east')

    async def test_a_function_of_an_operators_own_is_run_and_writes_nothing(self, stuck: StuckOwner) -> None:
        file = stuck.folder / "own.py"
        file.write_text(OWN.replace("CLUSTER", "client"))

        done = await stuck.run("diff", file=file)

        assert (done.returncode, done.stderr) == (1, "")
        assert "outside of components" in done.stdout
        assert "east-settings  would be created" in done.stdout
        with pytest.raises(NotFoundError):
            await stuck.cluster.client.get(CONFIG_MAP, ObjectKey(stuck.cluster.namespace, "east-own"))

    async def test_what_nobody_can_rehearse_is_refused(self, stuck: StuckOwner) -> None:
        file = stuck.folder / "own.py"
        file.write_text(OWN.replace("CLUSTER.apply(own, field_manager='own')", "cluster.create(own)"))

        done = await stuck.run("diff", file=file)

        assert done.returncode == 5
        assert "uses create of ctx.cluster, which a dry run cannot predict" in done.stderr
        assert done.stderr.count("\n") == 1

    @pytest.mark.slow
    async def test_a_function_that_never_returns_ends_in_time(self, stuck: StuckOwner) -> None:
        file = stuck.folder / "slow.py"
        file.write_text(
            OWN.replace("await ctx.CLUSTER.apply(own, field_manager='own')", "await asyncio.Event().wait()")
        )

        done = await stuck.run("diff", "ward/east", "--timeout", "2", file=file)

        check_one_line(done, 5, "comparing: not finished within 2 s; increase the limit with --timeout")

    async def _changes(self, stuck: StuckOwner) -> list[dict[str, str]]:
        done = await stuck.run("diff", "ward/east", "-o", "json")
        assert (done.returncode, done.stderr) == (1, "")
        [owner] = json.loads(done.stdout)["owners"]
        changes: list[dict[str, str]] = owner["changes"]
        return changes


OWN = f"""
import asyncio
import sys
sys.path.insert(0, {str(FILE.parents[2])!r})
from konverge import Operator
from tests.cli.stuck_operator import Ward, settings

operator = Operator("own")

@operator.reconciles(Ward)
async def reconcile(ward, ctx):
    async with ctx.flushing_status():
        await settings(ward).reconcile(ctx)
        metadata = {{"name": "east-own", "namespace": ward.metadata.namespace}}
        own = {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}
        await ctx.CLUSTER.apply(own, field_manager='own')
"""


@pytest.mark.slow
def test_a_server_that_cannot_be_reached(konverge: Konverge, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, f"http://127.0.0.1:{find_unused_port()}")

    check_one_line(konverge("diff", FILE, "ward/east", "--kubeconfig", config), 4, "127.0.0.1")


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        ("word/east", "operator wards: expected one of its kinds (Ward), found 'word'; did you mean 'ward'?"),
        ("zebra/east", "operator wards: expected one of its kinds (Ward), found 'zebra'"),
        ("east", "east: expected KIND/NAME or a file with the owner: no such file and no such kind"),
        ("ward/", "expected KIND/NAME"),
        ("a/b/c", "expected KIND/NAME"),
        ("nowhere.yaml", "nowhere.yaml: No such file or directory"),
        ("other.yaml", "other.yaml: expected one Ward, found none (Pod)"),
        ("two.yaml", "two.yaml: expected one Ward, found 2 (Ward, Ward)"),
        ("old.yaml", "old.yaml: expected apiVersion wards.konverge.test/v1, found wards.konverge.test/v1beta1"),
        ("nameless.yaml", "nameless.yaml: Ward: metadata.name: expected a name, found none"),
        ("list.yaml", "list.yaml: expected objects, found a list"),
        ("kindless.yaml", "kindless.yaml: expected objects with apiVersion and kind, found one without"),
    ],
)
def test_an_owner_that_cannot_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, words: str) -> None:
    east = ward("default")
    for name, documents in (
        ("other.yaml", [{"apiVersion": "v1", "kind": "Pod"}]),
        ("two.yaml", [east, east]),
        ("old.yaml", [{**east, "apiVersion": "wards.konverge.test/v1beta1"}]),
        ("nameless.yaml", [{**east, "metadata": {}}]),
        ("list.yaml", [[east]]),
        ("kindless.yaml", [{"metadata": {"name": "east"}}]),
    ):
        (tmp_path / name).write_text(yaml.safe_dump_all(documents))

    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigurationError) as refused:
        find_owner(operator, owner)

    assert words in str(refused.value)


@pytest.mark.parametrize("owner", ["ward/east", "wards/east", "wd/east", "Ward/east", "wards.wards.konverge.test/east"])
def test_a_kind_has_the_names_that_kubectl_takes(owner: str) -> None:
    found = find_owner(operator, owner)

    assert (found.registration.cls, found.name) == (Ward, "east")  # type: ignore[union-attr]  # it is no file


@pytest.mark.parametrize("command", ["preview", "diff", "explain"])
def test_an_unknown_kind_is_a_matter_of_the_command_line(konverge: Konverge, command: str) -> None:
    check_one_line(
        konverge(command, FILE, "wart/east"), 3, "expected one of its kinds (Ward), found 'wart'; did you mean 'ward'?"
    )


@pytest.mark.parametrize("seconds", ["0", "nan", "-1", "1e9"])
def test_a_time_that_cannot_be(konverge: Konverge, seconds: str) -> None:
    done = konverge("diff", FILE, "ward/east", "--timeout", seconds)

    assert (done.returncode, done.stdout) == (2, "")
    assert "expected more than 0 and at most 86400" in done.stderr


def test_long_values_and_many_fields_are_shortened() -> None:
    fields = tuple(FieldChange(f".data.key-{number}", "changed", "x" * 5000, "y" * 5000) for number in range(150))

    lines = list(format_change(ObjectChange("update", "v1/ConfigMap/default/big", fields)))

    assert len(lines) == 102
    assert max(map(len, lines)) < 400
    assert lines[-1].endswith("… and 50 fields more")
    assert list(format_change(ObjectChange("update", "v1/ConfigMap/default/big", fields[:101])))[-1].endswith(
        "… and 1 field more"
    )
    assert format_value("x" * 5000).endswith("… (5002 characters)")


def test_a_refusal_of_the_cluster_is_found_behind_a_components_error() -> None:
    refused = ForbiddenError("no")
    error = ReconcileError("failed to check existence of resource")
    error.__cause__ = refused

    assert find_refusal(ExceptionGroup("several", [ValueError("other"), error])) is refused
    assert find_refusal(ReconcileError("an author's mistake")) is None
