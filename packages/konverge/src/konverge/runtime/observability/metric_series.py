"""Numbers that are counted while the operator works. Pure; a handful of bytes and a tenth of a microsecond each.

prometheus-client's own counters take a lock for each change. A pause of the garbage collector is counted from within
the collector, which can run while such a lock is held, by the very thread that would then wait for it for ever. So what
is counted here is plain numbers, changed in the event loop alone; prometheus-client writes them out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from konverge.runtime.observability.metric_families import EXCEEDED, MetricFamily

__all__ = [
    "FamilySample",
    "HistogramSample",
    "HistogramValue",
    "MetricSeries",
    "NumberValue",
    "SampleValue",
    "build_histogram_series",
    "build_number_series",
]

# Label values come from code, and from a server's status codes; none of them has this many in a sane process.
_MAX_SERIES = 2000


class NumberValue:
    """A counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def read(self) -> float:
        """The number now."""
        return self.value


class HistogramValue:
    """A histogram.

    Args:
        bounds: The upper bounds, inclusive and growing; one for the rest comes by itself.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def read(self) -> HistogramSample:
        """The counts now."""
        return HistogramSample(tuple(self._counts), self._sum)


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """A histogram at one moment: how many values fell into each bucket (not cumulated), and their sum."""

    counts: tuple[int, ...]
    sum: float


SampleValue: TypeAlias = "float | HistogramSample"
C = TypeVar("C", NumberValue, HistogramValue)


@dataclass(frozen=True, slots=True)
class FamilySample:
    """One family at one moment.

    Args:
        family: Which one.
        series: The label values of each series and what it says. It is walked once, perhaps in another thread, and
            holds nothing that changes meanwhile.
    """

    family: MetricFamily
    series: Iterable[tuple[tuple[str, ...], SampleValue]]


class MetricSeries(Generic[C]):
    """All series of one family.

    Args:
        family: Its name and labels.
        make: Makes one that says zero.
    """

    def __init__(self, family: MetricFamily, make: Callable[[], C]) -> None:
        self._family = family
        self._make: Callable[[], C] = make
        self._children: dict[tuple[str, ...], C] = {}

    def get_child(self, *values: str) -> C:
        """The series with those label values, which exists from then on.

        One series too many becomes the one whose every label says so: a mistake in a label costs a number, not the
        process's memory.
        """
        child = self._children.get(values)
        if child is None:
            if len(values) != len(self._family.labels):
                raise ValueError(f"{self._family.name} has the labels {self._family.labels} (found {values})")
            if len(self._children) >= _MAX_SERIES:
                values = (EXCEEDED,) * len(values)
            child = self._children.setdefault(values, self._make())
        return child

    def read(self) -> FamilySample:
        """All of them now."""
        # The list is made in one step: a watchdog's thread may add a series while this one reads.
        return FamilySample(
            self._family, tuple((values, child.read()) for values, child in list(self._children.items()))
        )


def build_number_series(family: MetricFamily) -> MetricSeries[NumberValue]:
    """The series of a counter or gauge."""
    return MetricSeries(family, NumberValue)


def build_histogram_series(family: MetricFamily) -> MetricSeries[HistogramValue]:
    """The series of a histogram."""
    return MetricSeries(family, lambda: HistogramValue(family.bounds))
