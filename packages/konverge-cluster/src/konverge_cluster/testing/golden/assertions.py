"""Comparing what is rendered with a golden file, or writing it; and the messages that say what differs."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from konverge_cluster.testing.golden.golden_run import get_current_run, read_golden
from konverge_cluster.testing.golden.serialization import Renderable, redact_text, serialize

__all__ = ["assert_golden", "check_golden_text", "compare_golden"]

_CONTEXT_LINES = 3


def assert_golden(
    rendered: Renderable,
    path: str | os.PathLike[str] | None = None,
    *,
    reveal_secrets: bool = False,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Fail unless the golden file holds what is rendered; with ``--update-golden``, write it instead.

    Args:
        rendered: A component, a primitive, an object as a mapping, or several of them.
        path: The golden file. A relative path starts at the folder of the running test's file. Without one it is
            ``golden/<test file>/<test>.yaml`` there, for example ``golden/test_web/test_defaults.yaml``.
        reveal_secrets: Write the values of Secrets into the file, and show them in the diff (`serialize`).
        data: What data cells hold while it is rendered, by their names (`serialize`).

    Raises:
        AssertionError: They differ (with the diff), or there is no such file (with the command that makes it).
        konverge.errors.KonvergeError: It cannot be rendered, or the file cannot be read or written.
    """
    __tracebackhide__ = True
    text = serialize(rendered, reveal_secrets=reveal_secrets, data=data)
    check_golden_text(text, path, reveal_secrets=reveal_secrets)


def compare_golden(
    rendered: Renderable,
    path: str | os.PathLike[str],
    *,
    reveal_secrets: bool = False,
    data: Mapping[str, Any] | None = None,
) -> str:
    """The unified diff from a golden file to what is rendered, empty when there is none; for use outside of tests.

    Args:
        rendered: As for `assert_golden`.
        path: The golden file; a relative path starts at the working directory. One that does not exist is empty.
        reveal_secrets: Compare and show the values of Secrets.
        data: As for `assert_golden`.

    Raises:
        konverge.errors.KonvergeError: It cannot be rendered, or the file cannot be read.
    """
    golden = Path(path)
    text = serialize(rendered, reveal_secrets=reveal_secrets, data=data)
    return _format_difference(read_golden(golden), text, str(golden), reveal_secrets=reveal_secrets)


def check_golden_text(
    text: str, path: str | os.PathLike[str] | None, *, reveal_secrets: bool = False, note: str = ""
) -> None:
    """`assert_golden` for what is text already.

    Args:
        text: What the file shall hold.
        path: As for `assert_golden`.
        reveal_secrets: The diff may show the values of Secrets.
        note: What to say besides when the assertion fails, as lines.

    Raises:
        AssertionError: As `assert_golden`.
        konverge.errors.ConfigurationError: The file cannot be read or written.
    """
    __tracebackhide__ = True
    run = get_current_run()
    golden = run.find_path(path)
    run.used.add(golden)
    if run.updates:
        run.update(golden, text)
        return
    expected = read_golden(golden)
    note = f"{note}\n" if note else ""
    if expected is None:
        raise AssertionError(
            f"there is no golden file {run.format_path(golden)}\n{note}"
            f"write it, and look at it before you commit it: {run.update_command}"
        )
    if difference := _format_difference(expected, text, run.format_path(golden), reveal_secrets=reveal_secrets):
        raise AssertionError(
            f"what is rendered differs from the golden file {run.format_path(golden)}\n{note}{difference}"
            f"if it is meant to: {run.update_command}"
        )


def _format_difference(expected: str | None, text: str, golden: str, *, reveal_secrets: bool) -> str:
    if expected == text:
        return ""
    shown = expected or ""
    if not reveal_secrets:
        shown = redact_text(shown)
        if shown == text:
            return "the file holds values of Secrets; they are not shown, and should not be in it\n"
    # At line feeds alone: splitlines would take other characters inside a value for ends of lines.
    lines = difflib.unified_diff(
        shown.split("\n")[:-1],
        text.split("\n")[:-1],
        "/dev/null" if expected is None else f"{golden} (golden)",
        "rendered",
        lineterm="",
        n=_CONTEXT_LINES,
    )
    return "".join(f"{line}\n" for line in lines)
