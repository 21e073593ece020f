"""The box at work: what passes are made with, which becomes another one while they run when the file has changed."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from konverge.operator.owner_context import OperatorRun
from konverge_box.file import OperatorBox
from konverge_box.providers import ProviderPool
from konverge_box.runtime.box_run import BoxRun
from konverge_box.runtime.pipeline import Pipeline, compile_pipelines

__all__ = ["ActiveBox"]


class ActiveBox:
    """A box, its pipelines and its runs.

    Args:
        box: The box at the beginning.
        pool: The providers.

    Attributes:
        box: The box as it is.
        pipelines: Its pipelines by name. Both are replaced together; a pass goes on with what it began with.
        pool: The providers, of this box and of those after it.
    """

    def __init__(self, box: OperatorBox, pool: ProviderPool) -> None:
        self.box = box
        self.pool = pool
        self.pipelines: Mapping[str, Pipeline] = compile_pipelines(box, pool)
        self._runs: WeakKeyDictionary[OperatorRun, BoxRun] = WeakKeyDictionary()

    def replace(self, box: OperatorBox, pipelines: Mapping[str, Pipeline]) -> None:
        """Replace the box: passes under way end with what they began with, all owners get another one."""
        self.box, self.pipelines = box, pipelines
        for run in list(self._runs.values()):
            run.replace_box(box)

    @property
    def runs(self) -> list[BoxRun]:
        """Its runs that are under way."""
        return list(self._runs.values())
