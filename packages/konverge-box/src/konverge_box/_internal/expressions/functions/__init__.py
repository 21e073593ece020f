"""The functions that expressions can call, each a pure function of its arguments.

A function is called, ``toLower(spec.name)``, or piped into, ``spec.name | toLower``: the piped value is the first
argument. The evaluation passes the time of the reconcile or a source of random values to functions that need them. A
function checks the types of its arguments first and its size before it builds a large value. It raises `ValueError`
with a message for the user.
"""

from konverge_box._internal.expressions.functions.choices import CHOICES, TYPES
from konverge_box._internal.expressions.functions.collections import COLLECTIONS, SAFE
from konverge_box._internal.expressions.functions.encodings import DATA, RANDOM
from konverge_box._internal.expressions.functions.function import Function, FunctionGroup
from konverge_box._internal.expressions.functions.network import NETWORK
from konverge_box._internal.expressions.functions.numbers import NUMBERS, QUANTITIES
from konverge_box._internal.expressions.functions.objects import OBJECTS, WORKLOADS
from konverge_box._internal.expressions.functions.strings import TEXTS
from konverge_box._internal.expressions.functions.times import CRON, TIMES
from konverge_box._internal.expressions.functions.versions import VERSIONS

__all__ = ["GROUPS", "LIBRARY", "Function", "FunctionGroup"]

GROUPS = (
    CHOICES, SAFE, TYPES, TEXTS, NUMBERS, QUANTITIES, COLLECTIONS, DATA, VERSIONS, NETWORK, TIMES, CRON, OBJECTS,
    WORKLOADS, RANDOM,
)  # fmt: skip
"""The groups in the order of the documentation."""

LIBRARY = {function.name: function for group in GROUPS for function in group.functions}
"""All functions by name."""
