"""The modules of `konverge.types` say what the API server says, and cost what typing costs."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tools.schemas.generate import GROUP_VERSIONS, TARGET, document_path, read, request_json

import konverge.types
from konverge._internal.typegen import generate_builtin_modules
from konverge.kube import GroupVersionKind, Object
from konverge_cluster.controlplane import RealCluster
from tests.apply.rich_objects import NAMES, load_rich_object

FOLDER = Path(konverge.types.__file__).parent


def read_committed_modules() -> dict[str, str]:
    return {path.stem: path.read_text() for path in FOLDER.glob("*_v*.py")}


def class_of(gvk: GroupVersionKind) -> Any:
    """``apps_v1.Deployment`` of ``apps/v1/Deployment``."""
    group = gvk.group.partition(".")[0] or "core"
    return getattr(import_module(f"konverge.types.{group}_{gvk.version}"), gvk.kind)


def test_they_are_what_the_schemas_of_server_side_apply_make() -> None:
    index = json.loads((TARGET / "index.json").read_text())
    files = {path.stem: json.loads(path.read_text()) for path in TARGET.glob("*.json") if path.stem != "index"}
    kinds = {version: files[file]["kinds"] for version, file in index["group_versions"].items()}
    definitions = {name: node for file in files.values() for name, node in file["definitions"].items()}

    assert generate_builtin_modules(kinds, definitions) == read_committed_modules()


@pytest.mark.real
def test_they_are_what_the_real_server_s_documents_make(real_control_plane: RealCluster) -> None:
    documents = {version: request_json(real_control_plane, document_path(version)) for version in GROUP_VERSIONS}

    assert generate_builtin_modules(*read(documents)) == read_committed_modules()


@pytest.mark.parametrize("name", NAMES)
def test_an_object_that_the_real_server_accepts_fits(name: str) -> None:
    obj = without_empty_values(load_rich_object(name))

    # What a type does not know is left out.
    assert msgspec.convert(obj, class_of(GroupVersionKind.of(obj))) == obj


def without_empty_values(value: Any) -> Any:
    """Without null and empty strings, which say nothing to the server; the types do not have them."""
    if isinstance(value, dict):
        return {name: without_empty_values(below) for name, below in value.items() if below is not None and below != ""}
    return [without_empty_values(item) for item in value] if isinstance(value, list) else value


def deployment(**spec: Any) -> Object:
    pods = {"containers": [{"name": "web", "ports": [{"containerPort": 80}]}]}
    return {"kind": "Deployment", "spec": {"selector": {}, "template": {"spec": pods}, **spec}}


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        ({"spec": {"template": {}}}, "missing required field `selector`"),
        (deployment(replicas="2"), r"Expected `int`, got `str` - at `\$.spec.replicas`"),
        (deployment(strategy={"type": "Rolling"}), r"Invalid enum value 'Rolling' - at `\$.spec.strategy.type`"),
        (deployment(template={"spec": {"containers": {}}}), "Expected `array`, got `object`"),
        ({**deployment(), "kind": "Deploy"}, "Invalid enum value 'Deploy'"),
    ],
)
def test_an_object_with_a_mistake_does_not_fit(obj: Object, complaint: str) -> None:
    of = class_of(GroupVersionKind("apps", "v1", "Deployment"))

    with pytest.raises(msgspec.ValidationError, match=complaint):
        msgspec.convert(obj, of)
    assert msgspec.convert(deployment(), of) == deployment()


def list_loaded_modules(statement: str) -> set[str]:
    """What a fresh interpreter has loaded of konverge after a statement."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps([name for name in sys.modules if 'konverge' in name]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "statement", ["import konverge.operator", "import konverge.primitives", "import konverge._internal.cli"]
)
def test_nothing_of_konverge_loads_them(statement: str) -> None:
    assert not any(name.startswith("konverge.types") for name in list_loaded_modules(statement))


def test_a_module_loads_its_neighbours_alone() -> None:
    assert list_loaded_modules("import konverge.types.apps_v1") == {
        "konverge",
        "konverge.types",
        "konverge.types.apps_v1",
        "konverge.types.core_v1",
        "konverge.types.meta_v1",
    }
