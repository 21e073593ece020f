"""Feature gates, which turn a component, a resource or a mutation on or off.

Each reconcile evaluates the gates. The input of a gate is a version or values of a spec, given at its creation; the
output is one boolean or an error. A gate has no state; `when` returns a new gate.

A `VersionRange` supports semantic versions and the usual syntax of ranges. For any other scheme, provide your own
`VersionConstraint`.
"""

from konverge._internal.feature.gates import BooleanGate, Gate, VersionConstraint, VersionGate, is_enabled
from konverge._internal.feature.version_ranges import VersionRange

__all__ = ["BooleanGate", "Gate", "VersionConstraint", "VersionGate", "VersionRange", "is_enabled"]
