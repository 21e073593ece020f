"""A run of an operator that observes which access its functions use.

An author's function has no declaration from which its permissions could be derived. `observe_operator` runs the
operator for sample owners on an embedded cluster, in simulated time, and returns the access of all requests, the
functions that did not run, and the lines that no owner reached. It is for a process of its own, in which `side_effects`
forbids everything outside of it.
"""

from konverge_cluster._internal.testing.observed_run.observed_run import observe_operator
from konverge_cluster._internal.testing.observed_run.side_effects import forbid_side_effects

__all__ = ["forbid_side_effects", "observe_operator"]
