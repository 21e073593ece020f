"""Taking over a box file that has changed, while the operator runs.

The new file is compiled first. If anything of it cannot be used, the box stays as it was and says so; if all is well,
the new pipelines take the place of the old ones at once: a pass that is under way ends with the steps that it began
with, and every object gets another one. What only a start can change is refused, with the words to restart.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from konverge.clock import Clock
from konverge.crd.api_names import to_camel_case
from konverge.errors import KonvergeError, format_error
from konverge_box.file import OperatorBox
from konverge_box.file.yaml_source import MAX_BYTES
from konverge_box.runtime.active_box import ActiveBox
from konverge_box.runtime.box_validation import load_valid_box
from konverge_box.runtime.pipeline import Pipeline, compile_pipelines

__all__ = ["BoxReloader", "find_restart_errors"]

_log = logging.getLogger("konverge.box")

_POLL_SECONDS = 2.0
_MAX_PROBLEM_LENGTH = 2000

_Signature = tuple[int, int, int, int] | None
_NO_SIGNATURE: _Signature = (0, 0, 0, 0)


class BoxReloader:
    """Looks at the file of a box.

    Args:
        active: The box in use.
        file: Its file, as it was when the box was loaded.

    Attributes:
        problem: Why what is there now is not in use; empty when it is.
    """

    def __init__(self, active: ActiveBox, file: Path) -> None:
        self.problem = ""
        self._active = active
        self._file = file
        self._seen: _Signature = _NO_SIGNATURE  # what is there now may be newer than what was loaded

    async def watch(self, clock: Clock, *, poll_seconds: float = _POLL_SECONDS) -> None:
        """Look again and again, until cancelled.

        Args:
            clock: The time.
            poll_seconds: How long between two looks.
        """
        while True:
            await clock.sleep(poll_seconds)
            await self.reload_if_changed()

    async def reload_if_changed(self) -> bool:
        """Take the file over if it has changed since the last look.

        Returns:
            Whether another box is at work now.
        """
        signature = await asyncio.to_thread(_read_signature, self._file)
        if signature == self._seen:
            return False
        try:
            text = await asyncio.to_thread(_read_file, self._file)
            # Compiling a long file takes a while; passes go on meanwhile.
            box, pipelines = await asyncio.to_thread(self._compile_box, text)
        except (KonvergeError, OSError, ValueError) as error:
            self._seen = signature
            self._reject_box(format_error(error))
            return False
        if await asyncio.to_thread(_read_signature, self._file) != signature:
            return False  # replaced while we read: the next look sees it whole
        self._seen = signature
        if box == self._active.box:
            if self.problem:
                self._clear_problem()
            return False
        self._accept_box(box, pipelines)
        return True

    def _compile_box(self, text: bytes) -> tuple[OperatorBox, dict[str, Pipeline]]:
        box = load_valid_box(text, file=str(self._file), pool=self._active.pool)
        pipelines = dict(compile_pipelines(box, self._active.pool))
        mistakes = list(find_restart_errors(self._active.box, box, self._active.pipelines, pipelines))
        if mistakes:
            raise KonvergeError(f"{self._file}: restart the operator for this: {'; '.join(mistakes)}")
        return box, pipelines

    def _reject_box(self, problem: str) -> None:
        self.problem = problem[:_MAX_PROBLEM_LENGTH]
        _log.error(
            "box %s: the changed file is not in use, the one before stays: %s",
            self._active.box.metadata.name,
            self.problem,
        )
        for run in self._active.runs:
            run.reload_problem = self.problem
            if run.metrics is not None:
                run.metrics.record_reload(applied=False)

    def _accept_box(self, box: OperatorBox, pipelines: dict[str, Pipeline]) -> None:
        changed = [name for name in box.spec.crds if _schema_differs(self._active.box, box, name)]
        self._active.replace(box, pipelines)
        self._clear_problem()
        for name in changed:
            _log.warning(
                "box %s: the schema of %s has changed; the cluster keeps the definition that it has until "
                "konverge crd %s is applied",
                box.metadata.name,
                name,
                self._file,
            )

    def _clear_problem(self) -> None:
        self.problem = ""
        _log.info("box %s: the changed file is in use", self._active.box.metadata.name)
        for run in self._active.runs:
            run.reload_problem = ""
            if run.metrics is not None:
                run.metrics.record_reload(applied=True)


def find_restart_errors(
    old: OperatorBox, new: OperatorBox, compiled: Mapping[str, Pipeline], recompiled: Mapping[str, Pipeline]
) -> Iterator[str]:
    """What of a changed box needs a start, one sentence each.

    Args:
        old: The box at work.
        new: The changed one.
        compiled: The pipelines of the former.
        recompiled: Those of the latter.
    """
    if old.metadata.name != new.metadata.name:
        yield f"metadata.name was {old.metadata.name}, and is {new.metadata.name}"
    if old.spec.crds.keys() != new.spec.crds.keys():
        yield f"spec.crds were {', '.join(old.spec.crds)}, and are {', '.join(new.spec.crds)}"
        return
    for name, declared in new.spec.crds.items():
        before, after = old.spec.crds[name].resource, declared.resource
        where = f"spec.crds.{name}"
        for field in ("api_version", "kind", "plural", "scope"):
            if getattr(before, field) != getattr(after, field):
                found = f"was {getattr(before, field)!r}, and is {getattr(after, field)!r}"
                yield f"{where}.resource.{to_camel_case(field)} {found}"
        if (before.schema is None) != (after.schema is None):
            yield f"{where}.resource.schema was {'not ' if before.schema is None else ''}there"
        one, other = compiled[name], recompiled[name]
        if other.finalizers != one.finalizers:
            yield f"{where}.finalizers were {', '.join(one.finalizers)}, and are {', '.join(other.finalizers)}"
        fields = one.validation.unique_fields, other.validation.unique_fields
        if fields[0] != fields[1]:
            yield f"{where}.validation asks for other unique fields"
        elif fields[0] and _build_canonical_steps(one) != _build_canonical_steps(other):
            yield f"{where} has unique fields, and what normalize or mutation make of them changed"


def _build_canonical_steps(pipeline: Pipeline) -> tuple[object, ...]:
    return pipeline.declared.normalize, pipeline.declared.mutation


def _schema_differs(old: OperatorBox, new: OperatorBox, name: str) -> bool:
    return old.spec.crds[name].resource != new.spec.crds[name].resource


def _read_signature(file: Path) -> _Signature:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_dev, found.st_mtime_ns, found.st_size


def _read_file(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)
