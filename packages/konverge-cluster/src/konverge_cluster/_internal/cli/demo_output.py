"""Output of the demo: lines for a file or a pipe, a live view for a terminal. Both receive the same calls."""

from __future__ import annotations

import sys
import textwrap
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from typing import TYPE_CHECKING, Protocol

import click

from konverge_cluster._internal.cli.demo_changes import describe_changes, describe_state, get_conditions
from konverge_cluster._internal.cli.demo_script import DemoState, DemoStep, Waypoint

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

__all__ = ["DemoOutput", "LiveOutput", "PlainOutput", "choose_output"]


class DemoOutput(Protocol):
    """Output of the demo's progress."""

    pause_seconds: float
    """Seconds that a reader needs before the next step begins."""

    def display(self) -> AbstractContextManager[object]:
        """Show the output while the block runs."""

    def print_line(self, text: str) -> None:
        """Print a line about the demo itself."""

    def start_step(self, number: int, step: DemoStep) -> None:
        """Show that a step begins."""

    def report_changes(self, before: DemoState, after: DemoState, elapsed: float) -> None:
        """Show the changes between two states, `elapsed` seconds after the step began."""

    def report_waypoint(self, waypoint: Waypoint, elapsed: float) -> None:
        """Show that a waypoint of the step is reached."""

    def finish_step(self, elapsed: float, result: str = "") -> None:
        """Show that the step is complete; `result` is an additional measurement."""


def choose_output(*, plain: bool) -> DemoOutput:
    """Return the live view if this is a terminal and rich is installed, else plain lines."""
    if not plain and sys.stdout.isatty():
        try:
            import rich.live  # noqa: F401
        except ImportError:
            click.echo("(a live view needs rich: pip install 'konverge[terminal]')", err=True)
        else:
            return LiveOutput()
    return PlainOutput()


_WIDTH = 100
# Below the reason of a condition, after the time and the type.
_MESSAGE_INDENT = 36


class PlainOutput:
    """Output as lines, one for each event."""

    pause_seconds = 0.0

    def display(self) -> AbstractContextManager[object]:
        """Return a context without effect: lines need no preparation."""
        return nullcontext()

    def print_line(self, text: str) -> None:
        """Print a line about the demo itself."""
        self._write(text)

    def start_step(self, number: int, step: DemoStep) -> None:
        """Print the title of a step."""
        self._write(f"\n{number:2}. {step.title}")

    def report_changes(self, before: DemoState, after: DemoState, elapsed: float) -> None:
        """Print added and removed objects, and changed conditions."""
        for line in describe_changes(before, after):
            self._write(f"    {elapsed:6.2f} s  {line}", indent=_MESSAGE_INDENT)

    def report_waypoint(self, waypoint: Waypoint, elapsed: float) -> None:
        """Print a waypoint that is reached."""
        self._write(f"    {elapsed:6.2f} s  => {waypoint.goal}")

    def finish_step(self, elapsed: float, result: str = "") -> None:
        """Print the duration and the result of a step."""
        self._write(f"    done in {elapsed:.1f} s" + (f": {result}" if result else ""))

    def _write(self, text: str, indent: int = 4) -> None:
        """Print a text; a long one continues below its own beginning."""
        blank, text = ("\n", text[1:]) if text.startswith("\n") else ("", text)
        lines = textwrap.wrap(
            text,
            _WIDTH,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        )
        click.echo(blank + "\n".join(lines))
        sys.stdout.flush()


_STATUS_STYLES = {"True": "green", "False": "yellow"}
_REASON_STYLES = {"Degraded": "red", "Down": "red", "Error": "red", "Suspended": "blue"}
_MAX_CHANGES = 6
# What stays free on a terminal below the view.
_FREE_LINES = 2


class LiveOutput:
    """A view of the steps, the conditions and the objects that changes in place; needs rich."""

    pause_seconds = 1.5

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False) if console is None else console
        self._steps: list[tuple[str, str]] = []
        self._state = DemoState("")
        self._changes: deque[str] = deque(maxlen=_MAX_CHANGES)
        self._live = Live(console=self._console, auto_refresh=False)

    def display(self) -> AbstractContextManager[object]:
        """Draw the view in place until the block ends; its last state remains visible."""
        return self._live

    def print_line(self, text: str) -> None:
        """Print a line above the view."""
        self._console.print(text, soft_wrap=True, markup=False)

    def start_step(self, number: int, step: DemoStep) -> None:
        """Add a step to the view."""
        self._steps.append((f"{number:2}. {step.title}", "..."))
        self._draw()

    def report_changes(self, before: DemoState, after: DemoState, elapsed: float) -> None:
        """Show the current state and the last changes."""
        self._state = after
        # The table of conditions has the messages.
        changes = (" ".join(line.split()[:3]) for line in describe_changes(before, after))
        self._changes.extend(f"{elapsed:6.2f} s  {line}" for line in changes)
        self._draw()

    def report_waypoint(self, waypoint: Waypoint, elapsed: float) -> None:
        """Show a waypoint that is reached."""
        self._changes.append(f"{elapsed:6.2f} s  => {waypoint.goal}")
        self._draw()

    def finish_step(self, elapsed: float, result: str = "") -> None:
        """Show the duration of the completed step."""
        title, _ = self._steps.pop()
        self._steps.append((title, f"{elapsed:.1f} s"))
        if result:
            self._changes.append(result)
        self._draw()

    def _draw(self) -> None:
        self._live.update(self._build_view(), refresh=True)

    def _build_view(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        view: list[Table | Text] = [Text(), self._build_conditions_table(), Text(), self._build_steps_table(), Text()]
        height = sum(len(self._console.render_lines(part)) for part in view)
        count = min(_MAX_CHANGES, self._console.height - height - _FREE_LINES)
        changes = list(self._changes)[-count:] if count > 0 else []
        return Group(*view, *(Text(line) for line in changes))

    def _build_conditions_table(self) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", title=None)
        for heading in ("CONDITION", "STATUS", "REASON", "MESSAGE"):
            table.add_column(heading, no_wrap=heading != "MESSAGE", overflow="fold", justify="left")
        for condition in get_conditions(self._state.webapp):
            table.add_row(
                condition.type,
                Text(condition.status, style=_STATUS_STYLES.get(condition.status, "")),
                Text(condition.reason, style=_REASON_STYLES.get(condition.reason, "")),
                Text(condition.message),
            )
        return table

    def _build_steps_table(self) -> Table:
        """Return the steps, with the objects beside them."""
        from rich.table import Table
        from rich.text import Text

        steps = [
            (Text(title, style=style), Text(f"{result}  ", style=style))
            for title, result in self._steps
            for style in ["bold" if result == "..." else "dim"]
        ]
        objects = [
            (Text(kind), Text(name), Text(describe_state(obj)))
            for (kind, name), obj in sorted(self._state.objects.items())
        ]
        table = Table.grid(padding=(0, 1))
        for step, obj in zip_longest(steps, objects):
            table.add_row(*(step or ("", "")), *(obj or ("", "", "")))
        return table
