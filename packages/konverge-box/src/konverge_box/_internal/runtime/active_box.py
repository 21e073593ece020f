"""The box in use: its pipelines and its runs. A changed file replaces the box while reconciles run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from konverge._internal.operator.owner_context import OperatorRun
from konverge_box._internal.file import OperatorBox
from konverge_box._internal.providers import ProviderPool
from konverge_box._internal.runtime.box_run import BoxRun
from konverge_box._internal.runtime.pipeline import Pipeline, compile_pipelines

__all__ = ["ActiveBox"]


class ActiveBox:
    """The box in use.

    Args:
        box: The box at the beginning.
        pool: The providers.

    Attributes:
        box: The current box.
        pipelines: Its pipelines by name. Both are replaced together; a reconcile keeps the pipeline it began with.
        pool: The providers of this box and of its replacements.

    Raises:
        konverge.errors.KonvergeError: A step cannot be compiled.
    """

    def __init__(self, box: OperatorBox, pool: ProviderPool) -> None:
        self.box = box
        self.pool = pool
        self.pipelines: Mapping[str, Pipeline] = compile_pipelines(box, pool)
        self._runs: dict[OperatorRun, BoxRun] = {}

    def replace(self, box: OperatorBox, pipelines: Mapping[str, Pipeline]) -> None:
        """Replace the box. Running reconciles finish with the old pipeline, and all owners are queued again."""
        self.box, self.pipelines = box, pipelines
        for run in self.runs:
            run.replace_box(box)

    @property
    def runs(self) -> list[BoxRun]:
        """The current runs of the box."""
        return list(self._runs.values())

    def find_run(self, operator_run: OperatorRun | None) -> BoxRun | None:
        """Return the box's part of an operator's run; None outside a run, as in a dry run."""
        return None if operator_run is None else self._runs.get(operator_run)

    @contextmanager
    def register_run(self, operator_run: OperatorRun, run: BoxRun) -> Iterator[None]:
        """Add a run of the box, and remove it at the end of the block."""
        self._runs[operator_run] = run
        try:
            yield
        finally:
            self._runs.pop(operator_run, None)
