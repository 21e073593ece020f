"""The two screens of the demo are told the same and show it."""

from __future__ import annotations

import sys

import pytest

from konverge.cli.screen import LiveScreen, PlainScreen, Screen, choose_screen
from konverge.cli.story import Apply, Step, Waypoint, World
from konverge.kube import Object

STEP = Step("The WebApp is created", Apply({}))
WAYPOINT = Waypoint("Ready is True (Healthy)", lambda _now, _before: "")
CONDITION = {"type": "Ready", "status": "True", "reason": "Healthy", "message": "All is well."}
WEBAPP: Object = {
    "kind": "WebApp",
    "metadata": {"name": "shop", "resourceVersion": "1", "generation": 1},
    "status": {"conditions": [CONDITION]},
}


@pytest.mark.parametrize("screen", [PlainScreen(), LiveScreen()], ids=["plain", "live"])
def test_the_reader_sees_the_step_the_condition_and_the_time(
    screen: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    before = World("shop")
    with screen.shown():
        screen.begin(2, STEP)
        screen.change(before, before.with_object(WEBAPP), 0.5)
        screen.reach(WAYPOINT, 0.75)
        screen.end(1.25, "nothing else")

    seen = capsys.readouterr().out
    for words in ("2. The WebApp is created", "Healthy", "All is well.", "=> Ready is True", "1.2 s", "nothing else"):
        assert words in seen


def test_what_is_no_terminal_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(choose_screen(plain=False), PlainScreen)


def test_a_terminal_gets_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert isinstance(choose_screen(plain=False), LiveScreen)
    assert isinstance(choose_screen(plain=True), PlainScreen)


def test_without_rich_a_terminal_gets_lines_and_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.live", None)

    assert isinstance(choose_screen(plain=False), PlainScreen)
    assert "pip install 'konverge[terminal]'" in capsys.readouterr().err
