"""Golden files: what a component renders, in a file beside its test, compared on each run.

`assert_golden` is a test's one line. ``pytest --update-golden`` writes the files, a review of their diff decides, and
from then on each change of what is rendered shows as one. It needs neither a cluster nor an event loop.

In goes a component, a primitive or plain objects; `serialization` makes text of it, the same on any machine and without
the values of Secrets; `golden_run` knows which test is running and where its file is; `assertions` compares or writes.
`golden_plugin` is pytest's side.
"""

from konverge_cluster.testing.golden.assertions import assert_golden, compare_golden
from konverge_cluster.testing.golden.serialization import Renderable, serialize

__all__ = ["Renderable", "assert_golden", "compare_golden", "serialize"]
