"""Both outputs of the demo receive the same calls and show them."""

from __future__ import annotations

import sys

import pytest

from konverge.kube import Object
from konverge_cluster._internal.cli.demo_output import DemoOutput, LiveOutput, PlainOutput, choose_output
from konverge_cluster._internal.cli.demo_script import ApplyAction, DemoState, DemoStep, Waypoint

STEP = DemoStep("The WebApp is created", ApplyAction({}))
WAYPOINT = Waypoint("Ready is True (Healthy)", lambda _now, _before: "")
CONDITION = {"type": "Ready", "status": "True", "reason": "Healthy", "message": "All is well."}
WEBAPP: Object = {
    "kind": "WebApp",
    "metadata": {"name": "shop", "resourceVersion": "1", "generation": 1},
    "status": {"conditions": [CONDITION]},
}


@pytest.mark.parametrize("screen", [PlainOutput(), LiveOutput()], ids=["plain", "live"])
def test_the_reader_sees_the_step_the_condition_and_the_time(
    screen: DemoOutput, capsys: pytest.CaptureFixture[str]
) -> None:
    before = DemoState("shop")
    with screen.display():
        screen.start_step(2, STEP)
        screen.report_changes(before, before.with_object(WEBAPP), 0.5)
        screen.report_waypoint(WAYPOINT, 0.75)
        screen.finish_step(1.25, "nothing else")

    seen = capsys.readouterr().out
    for words in ("2. The WebApp is created", "Healthy", "All is well.", "=> Ready is True", "1.2 s", "nothing else"):
        assert words in seen


def test_what_is_no_terminal_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(choose_output(plain=False), PlainOutput)


def test_a_terminal_gets_the_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)

    assert isinstance(choose_output(plain=False), LiveOutput)
    assert isinstance(choose_output(plain=True), PlainOutput)


def test_without_rich_a_terminal_gets_lines_and_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "rich.live", None)

    assert isinstance(choose_output(plain=False), PlainOutput)
    assert "pip install 'konverge[terminal]'" in capsys.readouterr().err
