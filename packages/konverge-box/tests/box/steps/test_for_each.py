"""The repetition of a resource by ``forEach``."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_box._internal.file import ForEach
from konverge_box._internal.steps import Scope, StepError
from konverge_box._internal.steps.for_each import MAX_ITEMS, Repetition
from konverge_box.expressions import EvaluationEnvironment, to_sensitive

WHERE = "spec.crds.web.onReconcile.configMaps[0]"


def turns(value: Any, field: str = "spec.hosts", as_: str = "host") -> list[dict[str, Any]]:
    scope = Scope({"spec": {"hosts": value}} if value is not ... else {"spec": {}}, EvaluationEnvironment())
    found = Repetition(ForEach(field=field, as_=as_), WHERE).list_scopes(scope)
    return [{name: each for name, each in turn.names.items() if name != "spec"} for turn in found]


def test_a_list_has_a_turn_for_each_element() -> None:
    assert turns(["b", {"c": 1}]) == [
        {"item": "b", "host": "b", "index": 0},
        {"item": {"c": 1}, "host": {"c": 1}, "index": 1},
    ]


def test_a_map_has_a_turn_for_each_entry_in_the_order_of_the_keys() -> None:
    assert turns({"b": 2, "a": 1}) == [
        {"item": "a", "host": "a", "index": 0, "value": 1},
        {"item": "b", "host": "b", "index": 1, "value": 2},
    ]


@pytest.mark.parametrize("value", [..., None, [], {}], ids=["absent", "null", "an empty list", "an empty map"])
def test_nothing_has_no_turns(value: Any) -> None:
    assert turns(value) == []


def test_a_path_leads_through_lists_by_number() -> None:
    assert [each["item"] for each in turns([{"names": ["x"]}], field=".spec.hosts.0.names")] == ["x"]


@pytest.mark.parametrize("value", ["a.example", 3, True])
def test_what_is_no_list_is_refused_instead_of_counting_as_an_empty_one(value: Any) -> None:
    with pytest.raises(StepError, match=r"configMaps\[0\]\.forEach: expected a list or a map in spec\.hosts, found "):
        turns(value)


def test_what_comes_from_a_secret_is_not_shown() -> None:
    with pytest.raises(StepError, match="found a value from a Secret") as caught:
        turns(to_sensitive("hunter2"))

    assert "hunter2" not in str(caught.value)


def test_too_many_items_are_refused_without_looking_at_them() -> None:
    class Endless(list[Any]):
        def __len__(self) -> int:
            return 1_000_000

        def __iter__(self) -> Any:
            raise AssertionError("the item is not read")

    with pytest.raises(StepError, match=f"expected at most {MAX_ITEMS} items in spec.hosts, found 1000000"):
        turns(Endless())


def test_without_for_each_there_is_one_turn() -> None:
    scope = Scope({}, EvaluationEnvironment())

    assert Repetition(None, WHERE).list_scopes(scope) == [scope]
