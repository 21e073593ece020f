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
    found = Repetition((ForEach(field=field, as_=as_),), WHERE).list_scopes(scope)
    return [{name: each for name, each in turn.names.items() if name != "spec"} for turn in found]


def test_a_list_has_a_turn_for_each_element() -> None:
    assert turns(["b", {"c": 1}]) == [
        {"item": "b", "host": "b", "index": 0, "key": "b"},
        {"item": {"c": 1}, "host": {"c": 1}, "index": 1},
    ]


def test_a_map_has_a_turn_for_each_entry_in_the_order_of_the_keys() -> None:
    assert turns({"b": 2, "a": 1}) == [
        {"item": "a", "host": "a", "index": 0, "value": 1, "key": "a"},
        {"item": "b", "host": "b", "index": 1, "value": 2, "key": "b"},
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

    assert Repetition((), WHERE).list_scopes(scope) == [scope]


MEMBERS = [
    {"name": "ada", "environments": ["dev", "prod"]},
    {"name": "bob", "environments": []},
    {"name": "eve", "environments": ["dev"], "limits": {"b": 2, "a": 1}},
]
MEMBER = ForEach(field="spec.members", as_="member", key="{{ member.name }}")


def list_turns(*loops: ForEach, members: Any = None, max_items: int = MAX_ITEMS) -> list[dict[str, Any]]:
    scope = Scope({"spec": {"members": MEMBERS if members is None else members}}, EvaluationEnvironment())
    return [dict(turn.names) for turn in Repetition(loops, WHERE, max_items).list_scopes(scope)]


def test_loops_in_loops_have_one_turn_for_each_pair_with_a_key() -> None:
    found = list_turns(MEMBER, ForEach(field="member.environments", as_="environment"))

    assert [(each["member"]["name"], each["environment"], each["index"], each["key"]) for each in found] == [
        ("ada", "dev", 0, "ada-dev"),
        ("ada", "prod", 1, "ada-prod"),
        ("eve", "dev", 2, "eve-dev"),
    ]
    assert [each["item"] for each in found] == ["dev", "prod", "dev"]


def test_independent_loops_are_a_product_and_a_map_has_its_value() -> None:
    found = list_turns(ForEach(field="spec.members.2.limits", as_="limit"), MEMBER)

    assert [each["key"] for each in found] == ["a-ada", "a-bob", "a-eve", "b-ada", "b-bob", "b-eve"]
    assert found[0]["value"] == 1


def test_the_keys_do_not_depend_on_the_order_of_the_items() -> None:
    loops = MEMBER, ForEach(field="member.environments", as_="environment")

    keys = {each["key"] for each in list_turns(*loops)}

    assert {each["key"] for each in list_turns(*loops, members=MEMBERS[::-1])} == keys


def test_items_can_come_from_an_expression() -> None:
    active = ForEach(field="{{ [m.name for m in spec.members if m.environments | notEmpty] }}")

    assert [each["item"] for each in list_turns(active)] == ["ada", "eve"]
    assert list_turns(ForEach(field="{{ spec.nothing }}")) == []


def test_items_that_are_mappings_have_no_key_unless_one_is_declared() -> None:
    assert ["key" in each for each in list_turns(ForEach(field="spec.members", as_="member"))] == [False] * 3
    assert [each["key"] for each in list_turns(MEMBER)] == ["ada", "bob", "eve"]


@pytest.mark.parametrize(
    ("loops", "problem"),
    [
        ((ForEach(field="spec.members", key="same"),), r"forEach: expected different keys, found 'same' twice"),
        (
            (ForEach(field="spec.members", key="{{ '' }}"),),
            r"forEach\.key: expected text or a whole number, found empty",
        ),
        ((ForEach(field="spec.members", key="{{ item }}"),), r"forEach\.key: expected text .*, found a mapping"),
        ((MEMBER, ForEach(field="member.name")), r"forEach\[1\]: expected a list or a map in member\.name"),
        ((ForEach(field="{{ 'text' }}"),), r"forEach: expected a list or a map in the expression, found a string"),
    ],
)
def test_a_loop_that_has_no_items_or_no_keys_is_refused(loops: tuple[ForEach, ...], problem: str) -> None:
    with pytest.raises(StepError, match=problem):
        list_turns(*loops)


def test_loops_in_loops_have_one_bound_together() -> None:
    with pytest.raises(StepError, match="expected at most 8 items in all loops together, found more"):
        list_turns(MEMBER, ForEach(field="spec.members", as_="other", key="{{ other.name }}"), max_items=8)


def test_a_key_from_a_secret_is_refused_and_not_shown() -> None:
    with pytest.raises(StepError, match="names are not confidential") as caught:
        list_turns(ForEach(field="spec.members", key="{{ item.word }}"), members=[{"word": to_sensitive("hunter2")}])

    assert "hunter2" not in str(caught.value)
