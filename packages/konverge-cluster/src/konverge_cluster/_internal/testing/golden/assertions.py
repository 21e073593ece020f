"""Comparison of rendered objects with a golden file, updates of the file, and reports of the difference."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from konverge_cluster._internal.testing.golden.golden_run import get_current_run, read_golden
from konverge_cluster._internal.testing.golden.serialization import Renderable, redact_text, serialize

__all__ = ["assert_golden", "check_golden_text", "compare_golden"]

_CONTEXT_LINES = 3


def assert_golden(
    rendered: Renderable,
    path: str | os.PathLike[str] | None = None,
    *,
    reveal_secrets: bool = False,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Compare rendered objects with the golden file; with ``--update-golden``, write the file instead.

    Args:
        rendered: A component, a primitive, an object as a mapping, or several of them.
        path: The golden file. A relative path starts at the folder of the running test's file. The default is
            ``golden/<test file>/<test>.yaml`` there, for example ``golden/test_web/test_defaults.yaml``.
        reveal_secrets: Write the values of Secrets into the file, and show them in the diff (`serialize`).
        data: The values of data cells during rendering, by name (`serialize`).

    Raises:
        AssertionError: The contents differ (with the diff), or the file does not exist (with the command that creates
            it).
        konverge.errors.KonvergeError: Rendering failed, or the file cannot be read or written.
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
    """Return the unified diff from a golden file to rendered objects, empty if equal; for use outside of tests.

    Args:
        rendered: As for `assert_golden`.
        path: The golden file; a relative path starts at the working directory. A file that does not exist counts as
            empty.
        reveal_secrets: Compare and show the values of Secrets.
        data: As for `assert_golden`.

    Raises:
        konverge.errors.KonvergeError: Rendering failed, or the file cannot be read.
    """
    golden = Path(path)
    text = serialize(rendered, reveal_secrets=reveal_secrets, data=data)
    return _format_difference(read_golden(golden), text, str(golden), reveal_secrets=reveal_secrets)


def check_golden_text(
    text: str, path: str | os.PathLike[str] | None, *, reveal_secrets: bool = False, note: str = ""
) -> None:
    """Compare text with the golden file, as `assert_golden` does for objects.

    Args:
        text: The expected content of the file.
        path: As for `assert_golden`.
        reveal_secrets: Show the values of Secrets in the diff.
        note: Additional lines for the error message.

    Raises:
        AssertionError: See `assert_golden`.
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
            f"create it, and review it before you commit it: {run.update_command}"
        )
    if difference := _format_difference(expected, text, run.format_path(golden), reveal_secrets=reveal_secrets):
        raise AssertionError(
            f"the rendered objects differ from the golden file {run.format_path(golden)}\n{note}{difference}"
            f"if the change is intended: {run.update_command}"
        )


def _format_difference(expected: str | None, text: str, golden: str, *, reveal_secrets: bool) -> str:
    if expected == text:
        return ""
    present = expected or ""
    if not reveal_secrets:
        present = redact_text(present)
        if present == text:
            return "the file contains values of Secrets, which the diff hides; remove them from the file\n"
    # Split only at line feeds: `splitlines` would also split at other characters inside a value.
    lines = difflib.unified_diff(
        present.split("\n")[:-1],
        text.split("\n")[:-1],
        "/dev/null" if expected is None else f"{golden} (golden)",
        "rendered",
        lineterm="",
        n=_CONTEXT_LINES,
    )
    return "".join(f"{line}\n" for line in lines)
