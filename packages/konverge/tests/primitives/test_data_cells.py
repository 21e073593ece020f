"""Data cells: what they hold, for whom, and that nobody else sees it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from konverge._internal.primitives.data_cells import clear_cells
from konverge.errors import KonvergeError, NotExtractedError
from konverge.kube import Object
from konverge.primitives import Data


def test_an_empty_cell_answers_the_default() -> None:
    port = Data[int]("port")
    assert (port.is_set, port.get(), port.get(80)) == (False, None, 80)


def test_a_value_that_is_required_and_not_there_is_an_error_of_its_own_that_names_the_cell() -> None:
    with pytest.raises(NotExtractedError, match='data "port" is not extracted') as raised:
        Data[int]("port").require()
    assert raised.value.name == "port"
    assert isinstance(raised.value, KonvergeError)


@pytest.mark.parametrize("value", ["http://db", "", 0, None])
def test_a_cell_holds_any_value_also_those_that_read_as_false(value: object) -> None:
    cell = Data[object]("any")
    cell.set(value)
    assert (cell.is_set, cell.get("default"), cell.require()) == (True, value, value)


def test_a_cell_can_be_emptied() -> None:
    cell = Data[int]("port")
    cell.set(80)
    cell.clear()
    assert not cell.is_set


def test_cells_of_one_name_are_two_cells() -> None:
    one, other = Data[int]("port"), Data[int]("port")
    one.set(80)
    assert not other.is_set


def test_a_cell_does_not_show_its_value() -> None:
    cell = Data[str]("password")
    cell.set("hunter2")
    assert repr(cell) == "Data('password')"


def test_an_extraction_fills_the_cell_and_none_leaves_it() -> None:
    def host_of(live: Object) -> str | None:
        found: str | None = live.get("host")
        return found

    host = Data[str]("host")
    extract = host.fill_with(host_of)
    extract({})
    assert not host.is_set
    extract({"host": "db"})
    extract({})
    assert host.require() == "db"


def test_emptying_some_cells_leaves_the_others() -> None:
    one, other = Data[int]("one"), Data[int]("other")
    one.set(1)
    other.set(2)
    clear_cells([one])
    assert (one.is_set, other.get()) == (False, 2)


@pytest.mark.anyio
async def test_tasks_that_share_a_cell_do_not_see_each_others_values() -> None:
    cell = Data[str]("shared")
    cell.set("the maker's")
    both = asyncio.Barrier(2)

    async def use(value: str) -> tuple[str, str]:
        before = cell.require()
        cell.set(value)
        await both.wait()
        return before, cell.require()

    seen = list(await asyncio.gather(use("one"), use("two")))

    assert seen == [("the maker's", "one"), ("the maker's", "two")]
    assert cell.require() == "the maker's"


def test_a_cell_that_nobody_has_any_more_leaves_nothing_behind() -> None:
    class Value:
        pass

    cell: Data[Any] | None = Data("gone")
    value: Value | None = Value()
    held = weakref.ref(value)
    assert cell is not None
    cell.set(value)
    value = cell = None
    gc.collect()
    assert held() is None
