from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from konverge.feature import BooleanGate, Gate, VersionConstraint, VersionGate, is_enabled


@dataclass
class From:
    """The versions from a number on; notes what it is asked."""

    minimum: int
    asked: list[str] = field(default_factory=list)

    def enabled(self, version: str) -> bool:
        self.asked.append(version)
        return int(version) >= self.minimum


class Broken:
    def enabled(self, version: str = "") -> bool:
        raise RuntimeError("registry unreachable")


class Asynchronous:
    async def enabled(self, version: str = "") -> bool:
        return False


@pytest.mark.parametrize(
    ("gate", "expected"),
    [
        pytest.param(BooleanGate(True), True, id="boolean on"),
        pytest.param(BooleanGate(False), False, id="boolean off"),
        pytest.param(BooleanGate(True).when(False), False, id="boolean narrowed"),
        pytest.param(BooleanGate(False).when(True), False, id="boolean cannot be widened"),
        pytest.param(VersionGate("8"), True, id="no constraints"),
        pytest.param(VersionGate("8", [From(7), From(8)]), True, id="all constraints hold"),
        pytest.param(VersionGate("8", [From(7), From(9)]), False, id="one constraint fails"),
        pytest.param(VersionGate("8", [None, From(8)]), True, id="absent constraints are ignored"),
        pytest.param(VersionGate("8", [From(8)]).when(True).when(True), True, id="all values are true"),
        pytest.param(VersionGate("8", [From(8)]).when(False).when(True), False, id="one value is false"),
    ],
)
def test_a_gate_is_on_when_all_it_asks_for_holds(gate: Gate, expected: bool) -> None:
    assert gate.enabled() is expected


def test_values_are_asked_before_constraints() -> None:
    assert VersionGate("8", [Broken()]).when(False).enabled() is False


def test_the_first_failing_constraint_ends_the_question() -> None:
    first, second = From(9), From(1)
    VersionGate("8", [first, second]).enabled()
    assert (first.asked, second.asked) == (["8"], [])


def test_a_constraint_that_raises_makes_the_gate_raise() -> None:
    with pytest.raises(RuntimeError, match="registry unreachable"):
        VersionGate("8", [Broken()]).enabled()


def test_narrowing_leaves_the_gate_itself_as_it_was() -> None:
    gate = VersionGate("8")
    gate.when(False)
    assert gate.enabled() is True


def test_constraints_given_as_a_generator_are_asked_each_time() -> None:
    gate = VersionGate("8", (From(minimum) for minimum in (7, 9)))
    assert (gate.enabled(), gate.enabled()) == (False, False)


def test_no_gate_is_on() -> None:
    assert is_enabled(None) is True


@pytest.mark.parametrize("gate", [Asynchronous(), VersionGate("8", [Asynchronous()])])  # type: ignore[list-item]
def test_an_asynchronous_answer_is_refused_instead_of_read_as_on(gate: Any) -> None:
    with pytest.raises(TypeError, match=r"Asynchronous.enabled\(\) returned coroutine: expected bool"):
        is_enabled(gate)


def accepts_both(gate: Gate, constraint: VersionConstraint) -> Coroutine[Any, Any, None] | None:
    """Checked by the type checker: the shipped gates and a plain class satisfy the protocols."""
    return None


accepts_both(BooleanGate(True), From(1))
accepts_both(VersionGate("1"), From(1))
