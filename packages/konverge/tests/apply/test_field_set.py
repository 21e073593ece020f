from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.apply.field_set import FieldSet, Path, field_element, format_path, key_element, value_element

_scalars = st.one_of(st.text(max_size=5), st.integers(-5, 100), st.booleans())
_elements = st.one_of(
    st.builds(field_element, st.text(max_size=4)),
    st.builds(key_element, st.dictionaries(st.sampled_from(["name", "port"]), _scalars, min_size=1)),
    st.builds(value_element, _scalars),
)
_paths: st.SearchStrategy[Path] = st.lists(_elements, min_size=1, max_size=4).map(tuple)
_sets = st.lists(_paths, max_size=12).map(FieldSet.of)


def paths_of(fields: FieldSet) -> set[Path]:
    return set(fields.iter_paths())


@pytest.mark.slow
@given(_sets)
def test_what_is_written_reads_the_same(fields: FieldSet) -> None:
    assert FieldSet.parse(fields.format()) == fields


@pytest.mark.slow
@given(st.lists(_paths, max_size=12))
def test_a_set_holds_exactly_the_paths_it_was_made_of(paths: list[Path]) -> None:
    fields = FieldSet.of(paths)
    assert paths_of(fields) == set(paths)
    assert all(path in fields for path in paths)


@pytest.mark.slow
@given(_sets, _sets)
def test_union_intersection_and_difference_are_those_of_the_paths(one: FieldSet, other: FieldSet) -> None:
    assert paths_of(one | other) == paths_of(one) | paths_of(other)
    assert paths_of(one & other) == paths_of(one) & paths_of(other)
    assert paths_of(one - other) == paths_of(one) - paths_of(other)


@pytest.mark.slow
@given(_sets, _sets)
def test_no_operation_leaves_empty_branches(one: FieldSet, other: FieldSet) -> None:
    for made in (one | other, one & other, one - other, one.subtract_trees(other)):
        assert made == FieldSet.of(made.iter_paths())


@pytest.mark.slow
@given(_sets, _sets)
def test_without_trees_drops_what_lies_below_too(one: FieldSet, other: FieldSet) -> None:
    gone = paths_of(other)
    left = {path for path in paths_of(one) if not any(path[:length] in gone for length in range(1, len(path) + 1))}
    assert paths_of(one.subtract_trees(other)) == left


def test_fields_are_written_in_the_servers_form() -> None:
    item = key_element({"protocol": "TCP", "port": 80})
    fields = FieldSet.of([("f:spec", "f:ports", item), ("f:spec", "f:ports", item, "f:port"), ("f:spec", "f:a")])
    assert fields.format() == {
        "f:spec": {"f:a": {}, "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}
    }


def test_elements_spelled_differently_are_the_same() -> None:
    written: dict[str, Any] = {'k:{ "b": "<", "a": 1.0 }': {}, 'v:"\\u0041"': {}}
    assert FieldSet.parse(written).format() == {'k:{"a":1,"b":"\\u003c"}': {}, 'v:"A"': {}}


def test_true_and_one_are_different_members() -> None:
    assert value_element(True) != value_element(1)
    assert key_element({"a": True}) != key_element({"a": 1})


@pytest.mark.parametrize("element", ["", "f", "x:1", "k:{", "k:[[", 'k:{"a":{}}', "v:", "v:[1]", "k:" + "[" * 100_000])
def test_an_element_that_makes_no_sense_is_left_out(element: str) -> None:
    assert paths_of(FieldSet.parse({element: {}, "f:a": {}})) == {("f:a",)}


def test_a_nesting_without_end_is_cut_off() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"f:a": nested}
    assert len(next(FieldSet.parse(nested).iter_paths())) < 1000


def test_the_empty_path_owns_nothing() -> None:
    assert not FieldSet.of([()])


@pytest.mark.parametrize(
    ("path", "printed"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:containers", key_element({"name": "a"}), "f:image"), '.containers[name="a"].image'),
        (("f:ports", key_element({"protocol": "TCP", "port": 80})), '.ports[port=80,protocol="TCP"]'),
        (("f:finalizers", value_element("a.b/c")), '.finalizers[="a.b/c"]'),
        (("f:annotations", "f:a.b/c"), ".annotations.a.b/c"),
        (("f:list", "i:2"), ".list[2]"),
    ],
)
def test_paths_are_printed_as_the_server_prints_them(path: Path, printed: str) -> None:
    assert format_path(path) == printed
