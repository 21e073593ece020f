"""Golden files: the rendered objects of a component in a file beside its test, compared on each run.

`assert_golden` is one line in a test. ``pytest --update-golden`` writes the files; a reviewer checks their diff. After
that, each change of the rendered objects appears as a diff. This requires neither a cluster nor an event loop.

The input is a component, a primitive or plain objects. `serialization` converts it to text that is the same on every
machine and contains no values of Secrets. `golden_run` knows the running test and its file. `assertions` compares or
writes. `golden_plugin` contains the pytest hooks.
"""

from konverge_cluster._internal.testing.golden.assertions import assert_golden, compare_golden
from konverge_cluster._internal.testing.golden.serialization import Renderable, serialize

__all__ = ["Renderable", "assert_golden", "compare_golden", "serialize"]
