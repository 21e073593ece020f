"""The output of the demo on a terminal of 100 columns: nothing is cut."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from konverge.kube import Object
from konverge_cluster._internal.cli.demo import find_example_folder
from konverge_cluster._internal.cli.demo_output import DemoOutput, LiveOutput, PlainOutput
from konverge_cluster._internal.cli.demo_script import DemoState, Waypoint, build_webapp_steps

if TYPE_CHECKING:
    from rich.console import Console

WEBAPP = yaml.safe_load((find_example_folder() / "webapp.yaml").read_text())
LABELS = {"app.kubernetes.io/instance": "shop"}
WAIT = (
    'Prerequisite not met: waiting for condition "BackendReady" to become True '
    "(currently False: Waiting for statefulset controller to observe latest spec)"
)


def build_state() -> DemoState:
    """Return the state with the longest names and messages that the demo has."""
    conditions = [
        ("ConfigReady", "True", "Healthy", "Component is healthy."),
        ("BackendReady", "False", "Creating", "Waiting for statefulset controller to observe latest spec"),
        ("FrontendReady", "False", "PrerequisiteNotMet", WAIT),
        ("Ready", "False", "PrerequisiteNotMet", f"2 of 3 components are not ready: frontend ({WAIT})"),
    ]
    fields = ("type", "status", "reason", "message")
    webapp: Object = {
        "kind": "WebApp",
        "metadata": {"name": "shop", "resourceVersion": "1", "generation": 12},
        "status": {"conditions": [dict(zip(fields, condition, strict=True)) for condition in conditions]},
    }
    state = DemoState("shop").with_object(webapp)
    names = [("Pod", f"shop-frontend-76f9d484c4-7bwf{number}") for number in range(4)]
    names += [
        ("StatefulSet", "shop-backend"),
        ("Deployment", "shop-frontend"),
        ("ReplicaSet", "shop-frontend-76f9d484c4"),
    ]
    for kind, name in names:
        metadata = {"name": name, "resourceVersion": "1", "labels": LABELS, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        state = state.with_object({"kind": kind, "metadata": metadata, "spec": {}})
    return state


def play(output: DemoOutput) -> None:
    """Have the output show every step, and all of the state."""
    before, after = DemoState("shop"), build_state()
    for number, step in enumerate(build_webapp_steps(WEBAPP), start=1):
        output.start_step(number, step)
        output.report_changes(before, after, 12.345)
        output.report_waypoint(
            Waypoint("Deployment shop-frontend has no OTEL_EXPORTER_OTLP_ENDPOINT", lambda *_: ""), 1
        )
        output.finish_step(12.3, "the operator has 6 watches open and sent 0 requests in 3 s")


def read_view(output: LiveOutput, terminal: Console) -> str:
    return "\n".join(
        "".join(part.text for part in line).rstrip() for line in terminal.render_lines(output._build_view())
    )


def test_a_view_of_few_things_cuts_nothing() -> None:
    console = pytest.importorskip("rich.console", reason="rich is an extra").Console
    terminal = console(file=io.StringIO(), width=100, height=40, force_terminal=True, color_system=None)
    output = LiveOutput(terminal)

    output.start_step(1, build_webapp_steps(WEBAPP)[0])
    service: Object = {"kind": "Service", "metadata": {"name": "shop-web", "resourceVersion": "1", "labels": LABELS}}
    output.report_changes(DemoState("shop"), DemoState("shop").with_object(service), 0)

    assert "Service shop-web" in read_view(output, terminal)


@pytest.mark.slow
@pytest.mark.parametrize("height", [60, 24])
def test_the_live_view_cuts_nothing_at_100_columns(height: int) -> None:
    console = pytest.importorskip("rich.console", reason="rich is an extra").Console
    terminal = console(file=io.StringIO(), width=100, height=height, force_terminal=True, color_system=None)
    output = LiveOutput(terminal)

    play(output)

    text = read_view(output, terminal)
    assert "…" not in text
    words = " ".join(text.split())
    for step in build_webapp_steps(WEBAPP):
        assert step.title in words
    for kind, name in build_state().objects:
        assert re.search(rf"{kind} +{name}", text)
    # The cells of the messages, joined.
    assert "latest spec" in words
    assert ("sent 0 requests" in text) == (height == 60)


def test_plain_lines_have_at_most_100_columns_and_all_words(capsys: pytest.CaptureFixture[str]) -> None:
    play(PlainOutput())

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert WAIT in " ".join(" ".join(lines).split())
