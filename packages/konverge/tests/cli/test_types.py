"""`konverge types`: anyone's custom resources as TypedDicts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio.to_thread
import pytest
import yaml

from konverge._internal.typegen import generate_custom_resource_module
from konverge.kube import GroupVersionKind, Object
from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge
from tests.cli.test_bad_input import check_one_line
from tests.typegen.definitions import build_definition, build_spec_definition, build_version

BOX = build_definition(build_version(), build_version("v1beta1"), group="types.konverge.test", kind="Box")
LID = build_definition(build_version(), group="lids.konverge.test", kind="Lid")
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "boxes"}}


@pytest.fixture
def installer(tmp_path: Path) -> Path:
    """What a project's release has: definitions among other objects, some of them in a List."""
    file = tmp_path / "install.yaml"
    file.write_text(yaml.safe_dump_all([NAMESPACE, None, BOX, {"apiVersion": "v1", "kind": "List", "items": [LID]}]))
    return file


def test_the_definitions_of_a_file_become_one_module(konverge: Konverge, installer: Path) -> None:
    done = konverge("types", "--crd", installer)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == generate_custom_resource_module([BOX, LID])
    assert "class BoxV1beta1(" in done.stdout


def test_several_files_become_one_module(konverge: Konverge, tmp_path: Path) -> None:
    for name, made in (("box.yaml", BOX), ("lid.yaml", LID)):
        (tmp_path / name).write_text(yaml.safe_dump(made))

    assert konverge("types", "--crd", "lid.yaml", "--crd", "box.yaml").stdout == generate_custom_resource_module(
        [BOX, LID]
    )


@pytest.mark.slow
def test_the_same_file_gives_the_same_bytes(started_konverge: Konverge, installer: Path) -> None:
    texts = {started_konverge("types", "--crd", installer, PYTHONHASHSEED=seed).stdout for seed in ("0", "1")}

    assert len(texts) == 1


@pytest.mark.parametrize("chosen", [("--kind", "Lid"), ("--group", "lids.konverge.test")])
def test_a_kind_or_a_group_can_be_chosen(konverge: Konverge, installer: Path, chosen: tuple[str, ...]) -> None:
    assert konverge("types", "--crd", installer, *chosen).stdout == generate_custom_resource_module([LID])


def test_from_stdin_into_a_file(environment: dict[str, str], installer: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "konverge", "types", "--crd", "-", "--out", "boxes.py"]

    with installer.open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, env=environment, cwd=tmp_path, capture_output=True, check=True)

    assert (done.stdout, done.stderr) == (b"", b"")
    assert (tmp_path / "boxes.py").read_text() == generate_custom_resource_module([BOX, LID])


@pytest.mark.parametrize("value", ["2020-01-01", "="])
def test_a_text_that_means_something_to_yaml_alone_stays_a_text(konverge: Konverge, tmp_path: Path, value: str) -> None:
    (tmp_path / "texts.yaml").write_text(
        yaml.safe_dump(build_spec_definition({"type": "string", "enum": ["X"]})).replace("X", value)
    )

    assert f'spec: Literal["{value}"]' in konverge("types", "--crd", "texts.yaml").stdout


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.real_time
async def test_those_of_a_cluster(cluster: Cluster, konverge: Konverge) -> None:
    made: Object = {**BOX, "metadata": {"name": "boxes.types.konverge.test"}}
    names = {"kind": "Box", "plural": "boxes", "singular": "box", "listKind": "BoxList"}
    versions = [{**each, "storage": each["name"] == "v1"} for each in BOX["spec"]["versions"]]
    made["spec"] = {**BOX["spec"], "names": names, "scope": "Namespaced", "versions": versions}
    await cluster.client.apply(made, field_manager="types")
    await cluster.eventually(lambda: cluster.client.mapping(GroupVersionKind("types.konverge.test", "v1", "Box")))
    arguments = (
        "types",
        "--cluster",
        "--kubeconfig",
        await cluster.write_kubeconfig(),
        "--group",
        "types.konverge.test",
    )

    done = await anyio.to_thread.run_sync(lambda: konverge(*arguments))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == generate_custom_resource_module([BOX])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--crd, --cluster: expected exactly one of them"),
        (("--cluster", "--crd", "x"), "--crd, --cluster: expected exactly one of them"),
        (("--crd", "x", "--context", "there"), "--kubeconfig, --context: requires --cluster"),
    ],
)
def test_options_that_contradict_each_other(konverge: Konverge, arguments: tuple[str, ...], words: str) -> None:
    done = konverge("types", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def laughs(levels: int) -> str:
    """YAML that is short and stands for two to the power of the levels."""
    lines = ["a0: &a0 {x: y}", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, levels))]
    return "\n".join(lines)


def merges(levels: int) -> str:
    """YAML whose merge keys are copied while it is read."""
    lines = ["a0: &a0 {x0: y}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], x{n}: y}}" for n in range(1, levels))]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "expected YAML: "),
        ("a: b: c", "expected YAML: mapping values are not allowed"),
        (b"\xff\xfe\xff", "expected YAML: "),
        ("- a\n- b", "expected objects, found a list"),
        ("kind: List\nitems: [1]", "expected objects, found a int"),
        ("", "expected CustomResourceDefinitions, found none"),
        (yaml.safe_dump(NAMESPACE), "expected CustomResourceDefinitions, found none"),
        ("kind: CustomResourceDefinition", "CustomResourceDefinition None, field apiVersion: "),
        (
            yaml.safe_dump(build_spec_definition({"type": "text"})),
            "version v1, field spec.type: expected one of",
        ),
        ("[" * 100_000, "expected YAML: it nests deeper than 500 levels"),
        ("a: &a [*a]", "expected YAML: it nests deeper than 200 levels"),
        (laughs(40), "expected YAML: with its aliases written out it has more than 2,000,000 values"),
        (merges(40), "expected YAML: with its aliases written out it has more than 2,000,000 values"),
        ("a: " + "x" * (16 << 20), "expected at most 16 MiB of YAML, found more"),
        ("a: .nan", "expected YAML: expected a finite number"),
        ("? [a]\n: b", "expected YAML: "),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_file_that_cannot_be_used(konverge: Konverge, tmp_path: Path, text: str | bytes, words: str) -> None:
    (tmp_path / "bad.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())

    check_one_line(konverge("types", "--crd", "bad.yaml"), 3, "konverge: bad.yaml: ", words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--crd", "absent.yaml"), "absent.yaml: No such file or directory"),
        (("--crd", "."), ".: Is a directory"),
        (("--crd", "install.yaml", "--kind", "Hat"), "of the chosen groups and kinds, found none"),
        (("--crd", "install.yaml", "--out", "no/such/folder.py"), "no/such/folder.py: No such file or directory"),
        (("--cluster", "--kubeconfig", "absent"), "absent"),
    ],
)
def test_places_that_are_not_there(konverge: Konverge, installer: Path, arguments: tuple[str, ...], words: str) -> None:
    assert installer.exists()

    check_one_line(konverge("types", *arguments), 3, words)
