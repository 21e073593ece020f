from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import ConfigMap, ConfigMapMutator, Operation
from tests.primitives.objects import build_named


def test_a_config_map_is_ready_by_existing() -> None:
    config = ConfigMap(build_named())
    assert config.converging_status({}, Operation.CREATED) is None
    assert config.grace_status({}) is None


def test_entries_have_shortcuts() -> None:
    def change(m: ConfigMapMutator) -> None:
        m.set_entry("mode", "fast")
        m.remove_entry("old")
        m.merge_yaml("app.yaml", "port: 2\n")
        m.edit_data(lambda data: data.set_binary("logo", b"\x00"))

    desired = ConfigMap(
        build_named(data={"old": "1", "app.yaml": "port: 1\n"}), mutations=Mutation("change", change)
    ).render()

    assert desired["data"] == {"mode": "fast", "app.yaml": "port: 2\n"}
    assert desired["binaryData"] == {"logo": "AA=="}


def test_entries_that_are_no_text_are_mistakes() -> None:
    config = ConfigMap(build_named(data={"port": 8080, "mode": "fast", "logo": b"\x00"}))
    assert config.errors == (
        "data['port']: expected a string, found int",
        "data['logo']: expected a string, found bytes",
    )


def test_the_hash_follows_the_data_and_nothing_else() -> None:
    def hash_of(**fields: Any) -> str:
        return ConfigMap.hash_data(build_named(**fields))

    assert hash_of(data={"a": "1", "b": "2"}) == hash_of(data={"b": "2", "a": "1"}, status={"x": "y"})
    assert hash_of(data={"a": "1"}) != hash_of(data={"a": "2"})
    assert hash_of(data={"a": "AA=="}) != hash_of(binaryData={"a": "AA=="})


def test_the_desired_hash_includes_mutations() -> None:
    mode = Mutation[ConfigMapMutator]("mode", lambda m: m.set_entry("mode", "fast"))
    assert ConfigMap(build_named(), mutations=mode).hash_desired_data() == ConfigMap.hash_data(
        {"data": {"mode": "fast"}}
    )


@pytest.mark.parametrize("data", [None, {}])
def test_no_data_hashes_like_empty_data(data: Object | None) -> None:
    assert ConfigMap.hash_data(build_named(data=data)) == ConfigMap.hash_data(build_named())
