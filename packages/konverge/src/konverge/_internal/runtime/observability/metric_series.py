"""Series of numbers that are counted while the operator runs. Pure; some bytes and a tenth of a microsecond each.

prometheus-client's own counters take a lock for each change. A pause of the garbage collector is counted from within
the collector. The collector can run while the same thread holds such a lock, which would be a deadlock. The values here
are therefore plain numbers that change only in the event loop; prometheus-client only writes them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from konverge._internal.runtime.observability.metric_families import EXCEEDED, MetricFamily

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

# Label values come from code and from status codes of a server. A healthy process never has this many.
_MAX_SERIES = 2000


class NumberValue:
    """The value of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def read(self) -> float:
        """Return the present value as a number."""
        return self.value


class HistogramValue:
    """The value of a histogram.

    Args:
        bounds: The upper bounds, inclusive and ascending; a bucket for larger values is added.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value in its bucket."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def read(self) -> HistogramSample:
        """Return the present counts and their sum."""
        return HistogramSample(tuple(self._counts), self._sum)


@dataclass(frozen=True, slots=True)
class HistogramSample:
    """A histogram at one moment: the number of values in each bucket (not cumulative), and their sum."""

    counts: tuple[int, ...]
    sum: float


SampleValue: TypeAlias = "float | HistogramSample"
C = TypeVar("C", NumberValue, HistogramValue)


@dataclass(frozen=True, slots=True)
class FamilySample:
    """One family at one moment.

    Args:
        family: The family.
        series: The label values and the value of each series. It is iterated once, possibly in another thread, and
            contains nothing that changes meanwhile.
    """

    family: MetricFamily
    series: Iterable[tuple[tuple[str, ...], SampleValue]]


class MetricSeries(Generic[C]):
    """All series of one family.

    Args:
        family: Its name and labels.
        make: Creates a value of zero.
    """

    def __init__(self, family: MetricFamily, make: Callable[[], C]) -> None:
        self._family = family
        self._make: Callable[[], C] = make
        self._children: dict[tuple[str, ...], C] = {}

    def get_child(self, *values: str) -> C:
        """Return the series with these label values; create it if it does not exist.

        A series beyond the limit is counted under the label value `EXCEEDED`: a wrong label costs a number, not the
        memory of the process.
        """
        child = self._children.get(values)
        if child is None:
            if len(values) != len(self._family.labels):
                raise ValueError(
                    f"{self._family.name}: expected values of the labels {self._family.labels}, found {values}"
                )
            if len(self._children) >= _MAX_SERIES:
                values = (EXCEEDED,) * len(values)
            child = self._children.setdefault(values, self._make())
        return child

    def read(self) -> FamilySample:
        """Return the present samples of all series."""
        # The list is created in one step: a watchdog's thread may add a series meanwhile.
        return FamilySample(
            self._family, tuple((values, child.read()) for values, child in list(self._children.items()))
        )


def build_number_series(family: MetricFamily) -> MetricSeries[NumberValue]:
    """Return the series of a counter or gauge."""
    return MetricSeries(family, NumberValue)


def build_histogram_series(family: MetricFamily) -> MetricSeries[HistogramValue]:
    """Return the series of a histogram."""
    return MetricSeries(family, lambda: HistogramValue(family.bounds))
