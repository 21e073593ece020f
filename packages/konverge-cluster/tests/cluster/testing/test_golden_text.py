"""The text of a golden file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge import BooleanGate, ComponentBuilder, Mutation
from konverge.errors import ConfigurationError, KonvergeError
from konverge.guards import blocked
from konverge.kube import Object
from konverge.options import delete, read_only
from konverge.primitives import ConfigMap, ConfigMapMutator, Data, Secret, Service, Static
from konverge_cluster.testing import assert_golden, compare_golden, serialize


def config(name: str = "web", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def secret(**fields: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "namespace": "default"}, **fields}


def set_color(mutator: ConfigMapMutator) -> None:
    mutator.set_entry("color", "blue")


def test_a_component_is_its_managed_objects_in_apply_order_with_mutations_and_without_guards() -> None:
    component = (
        ComponentBuilder("web", condition_type="WebReady")
        .with_resource(Service({"metadata": {"name": "web", "namespace": "default"}}))
        .with_resource(ConfigMap(config("seen")), read_only())
        .with_resource(ConfigMap(config("gone")), delete())
        .with_resource(
            ConfigMap(
                config(size="2"),
                mutations=[Mutation("color", set_color), Mutation("never", set_color, BooleanGate(False))],
                guard=lambda obj: blocked("not yet"),
            )
        )
        .suspend(True)
        .build()
    )

    assert (
        serialize(component)
        == """\
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: default
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  namespace: default
data:
  color: blue
  size: '2'
"""
    )


def test_a_primitive_its_object_and_a_list_of_it_are_the_same_text() -> None:
    text = serialize(config(size="2"))

    assert serialize(ConfigMap(config(size="2"))) == serialize([config(size="2")]) == text


def test_nothing_to_apply_is_said() -> None:
    assert serialize([]) == "# no objects\n"


def test_the_order_of_keys_does_not_show_and_the_order_of_lists_does() -> None:
    obj = {
        "metadata": {"name": "a"},
        "kind": "Widget",
        "apiVersion": "v1",
        "spec": {"b": 1, "a": [{"z": 1, "y": 2}, 3]},
    }
    turned = {
        "spec": {"a": [{"y": 2, "z": 1}, 3], "b": 1},
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "kind": "Widget",
    }

    assert serialize(obj) == serialize(turned)
    assert list(yaml.safe_load(serialize(obj))) == ["apiVersion", "kind", "metadata", "spec"]
    assert serialize(obj) != serialize({**obj, "spec": {"b": 1, "a": [3, {"z": 1, "y": 2}]}})


@pytest.mark.parametrize("status", [{}, None])
def test_what_a_server_sets_is_left_out(status: object) -> None:
    template = {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}}}
    obj = {**config(), "status": status, "spec": {"template": template}}
    obj["metadata"] = {**obj["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"}

    assert yaml.safe_load(serialize(obj)) == {**config(), "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}


def test_a_status_that_says_something_stays() -> None:
    assert "ready: true" in serialize({**config(), "status": {"ready": True}})


@pytest.mark.parametrize(
    "obj",
    [
        secret(data={"password": "aHVudGVyMg=="}),
        secret(stringData={"password": "hunter2"}),
        secret(data={"password": b"hunter2"}),
        secret(data="hunter2"),
        {"apiVersion": "v1", "kind": "List", "items": [secret(stringData={"password": "hunter2"})]},
        {**config(), "kind": "Template", "spec": {"made": secret(stringData={"password": "hunter2"})}},
        {
            **secret(),
            "metadata": {"name": "web", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}},
        },
    ],
)
def test_no_value_of_a_secret_is_in_the_text(obj: Object) -> None:
    text = serialize(obj)

    assert "hunter2" not in text
    assert "aHVudGVyMg" not in text
    assert "'***'" in text


def test_the_keys_of_a_secret_are_in_the_text_and_on_request_its_values() -> None:
    made = Secret(secret(data={"password": b"hunter2"}))

    assert yaml.safe_load(serialize(made))["data"] == {"password": "***"}
    assert yaml.safe_load(serialize(made, reveal_secrets=True))["data"] == {"password": "aHVudGVyMg=="}


def test_another_kind_of_that_name_is_shown() -> None:
    obj = {**secret(data={"path": "kv/web"}), "apiVersion": "vault.example.com/v1"}

    assert "kv/web" in serialize(obj)


def test_lines_of_a_value_show_as_lines_and_long_ones_are_not_folded() -> None:
    text = serialize(config(**{"nginx.conf": "server {\n  listen 80;\n}\n", "long": "word " * 100 + "end"}))

    assert "  nginx.conf: |\n    server {\n      listen 80;\n    }\n" in text
    assert f"  long: {'word ' * 100}end\n" in text


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    labels = {"app": "web"}

    assert "&" not in serialize({**config(), "spec": {"selector": labels, "labels": labels}})


def test_other_scripts_stay_readable() -> None:
    assert "greeting: Grüße, 世界 🚀" in serialize(config(greeting="Grüße, 世界 🚀"))


@pytest.mark.slow
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \t\r\n#:-'\"\x85\u2028\ufeff")),
    )
)
def test_the_text_says_what_the_object_says(data: dict[str, str]) -> None:
    text = serialize(config(**data))

    assert yaml.safe_load(text)["data"] == data
    assert text.endswith("\n")
    assert "\r" not in text


@pytest.mark.parametrize(
    ("rendered", "says"),
    [
        (
            {"metadata": {"namespace": "default", "name": "web"}},
            "object default/web: expected an object with apiVersion",
        ),
        ({**config(), "spec": object()}, "v1/ConfigMap/default/web is not a JSON object: found a value of type object"),
        (config(key="\ud800"), "v1/ConfigMap/default/web is not a JSON object: UnicodeEncodeError"),
        (42, "cannot render int: expected a component, a primitive, an object"),
        ("web", "cannot render str: expected a component"),
    ],
)
def test_what_is_no_object_is_said(rendered: Any, says: str) -> None:
    with pytest.raises(KonvergeError, match=says):
        serialize(rendered)


def test_data_cells_are_filled_by_name_while_it_is_rendered_and_not_afterwards(tmp_path: Path) -> None:
    host: Data[str] = Data("database host")
    use_host = Mutation[ConfigMapMutator]("host", lambda mutator: mutator.set_entry("host", host.require()))
    component = (
        ComponentBuilder("web", condition_type="WebReady")
        .with_resource(ConfigMap(config("seen"), extract=host.fill_with(lambda live: None)), read_only())
        .with_resource(ConfigMap(config(), requires=host, mutations=use_host))
        .build()
    )
    data, expected = {"database host": "db"}, serialize(config(host="db"))
    (tmp_path / "web.yaml").write_text(expected)

    assert serialize(component, data=data) == expected
    assert serialize([config("other"), component.entries[1].resource], data=data).endswith(expected)
    assert compare_golden(component, tmp_path / "web.yaml", data=data) == ""
    assert_golden(component, tmp_path / "web.yaml", data=data)
    assert not host.is_set
    with pytest.raises(ConfigurationError, match=r'data cells \("database host"\), found "database"$'):
        serialize(component, data={"database": "db"})
    with pytest.raises(ConfigurationError, match=r"data cells \(none, no resource declares any\)"):
        serialize(config(), data=data)


def test_a_mutation_that_fails_is_the_error() -> None:
    def fails(mutator: object) -> None:
        raise ValueError("no such color")

    broken = Static({**config(), "kind": "Palette"}, mutations=Mutation("color", fails))

    with pytest.raises(KonvergeError, match="v1/Palette/default/web.*mutation intent for color: ValueError: no such"):
        serialize(broken)
