"""The reload of a box file that has changed, while the operator runs.

The new file is compiled first. If a part of it cannot be used, the old box stays active and the error is reported.
Otherwise the new pipelines replace the old ones together: a running reconcile finishes with the steps it began with,
and every owner is queued again. A change that requires a restart is rejected with a message that names it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from konverge._internal.crd.api_names import to_camel_case
from konverge.clock import Clock
from konverge.errors import KonvergeError, format_error
from konverge_box._internal.file import OperatorBox
from konverge_box._internal.file.yaml_source import MAX_BYTES
from konverge_box._internal.runtime.active_box import ActiveBox
from konverge_box._internal.runtime.box_validation import load_valid_box
from konverge_box._internal.runtime.pipeline import Pipeline, compile_pipelines

__all__ = ["BoxReloader", "find_restart_errors"]

_log = logging.getLogger("konverge.box")

_POLL_SECONDS = 2.0
_MAX_PROBLEM_LENGTH = 2000

_Signature = tuple[int, int, int, int] | None
_NO_SIGNATURE: _Signature = (0, 0, 0, 0)


class BoxReloader:
    """The reloader of a box file: it polls the file and replaces the active box.

    Args:
        active: The box in use.
        file: The file from which the box was loaded.

    Attributes:
        problem: The error of the current file; empty when the file is in use.
    """

    def __init__(self, active: ActiveBox, file: Path) -> None:
        self.problem = ""
        self._active = active
        self._file = file
        self._last_signature: _Signature = _NO_SIGNATURE  # the file may have changed since it was loaded

    async def watch(self, clock: Clock, *, poll_seconds: float = _POLL_SECONDS) -> None:
        """Poll the file until cancelled.

        Args:
            clock: Waits between two polls.
            poll_seconds: The time between two polls.
        """
        while True:
            await clock.sleep(poll_seconds)
            await self.reload_if_changed()

    async def reload_if_changed(self) -> bool:
        """Replace the active box if the file has changed since the last poll.

        Returns:
            Whether another box is active now.
        """
        signature = await asyncio.to_thread(_read_signature, self._file)
        if signature == self._last_signature:
            return False
        try:
            text = await asyncio.to_thread(_read_file, self._file)
            # Compiling a long file takes time: reconciles continue meanwhile.
            box, pipelines = await asyncio.to_thread(self._compile_box, text)
        except (KonvergeError, OSError, ValueError) as error:
            self._last_signature = signature
            self._reject_box(format_error(error))
            return False
        if await asyncio.to_thread(_read_signature, self._file) != signature:
            return False  # the file was replaced during the read: the next poll reads it completely
        self._last_signature = signature
        if box == self._active.box:
            if self.problem:
                self._clear_problem()
            return False
        self._accept_box(box, pipelines)
        return True

    def _compile_box(self, text: bytes) -> tuple[OperatorBox, dict[str, Pipeline]]:
        box = load_valid_box(text, file=str(self._file), pool=self._active.pool)
        pipelines = dict(compile_pipelines(box, self._active.pool))
        errors = list(find_restart_errors(self._active.box, box, self._active.pipelines, pipelines))
        if errors:
            raise KonvergeError(f"{self._file}: restart the operator to apply these changes: {'; '.join(errors)}")
        return box, pipelines

    def _reject_box(self, problem: str) -> None:
        self.problem = problem[:_MAX_PROBLEM_LENGTH]
        _log.error(
            "box %s: the changed file is not applied, the old box stays active: %s",
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
                "box %s: the schema of %s has changed: the cluster keeps the old CustomResourceDefinition; "
                "apply the output of konverge crd %s",
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
    """Describe each change of a box that requires a restart of the operator.

    Args:
        old: The active box.
        new: The changed box.
        compiled: The pipelines of the active box.
        recompiled: The pipelines of the changed box.
    """
    if old.metadata.name != new.metadata.name:
        yield f"metadata.name was {old.metadata.name} and is now {new.metadata.name}"
    if old.spec.crds.keys() != new.spec.crds.keys():
        yield f"spec.crds were {', '.join(old.spec.crds)} and are now {', '.join(new.spec.crds)}"
        return
    for name, declared in new.spec.crds.items():
        before, after = old.spec.crds[name].resource, declared.resource
        where = f"spec.crds.{name}"
        for field in ("api_version", "kind", "plural", "scope"):
            if getattr(before, field) != getattr(after, field):
                change = f"was {getattr(before, field)} and is now {getattr(after, field)}"
                yield f"{where}.resource.{to_camel_case(field)} {change}"
        if (before.schema is None) != (after.schema is None):
            yield f"{where}.resource.schema was {'added' if before.schema is None else 'removed'}"
        one, other = compiled[name], recompiled[name]
        if other.finalizers != one.finalizers:
            yield f"{where}.finalizers were {', '.join(one.finalizers)} and are now {', '.join(other.finalizers)}"
        fields = one.validation.unique_fields, other.validation.unique_fields
        if fields[0] != fields[1]:
            yield f"{where}.validation has other unique fields"
        elif fields[0] and _build_canonical_steps(one) != _build_canonical_steps(other):
            yield f"{where} has unique fields, and its normalize or mutation step has changed"


def _build_canonical_steps(pipeline: Pipeline) -> tuple[object, ...]:
    return pipeline.declared.normalize, pipeline.declared.mutation


def _schema_differs(old: OperatorBox, new: OperatorBox, name: str) -> bool:
    return old.spec.crds[name].resource != new.spec.crds[name].resource


def _read_signature(file: Path) -> _Signature:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_dev, status.st_mtime_ns, status.st_size


def _read_file(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)
