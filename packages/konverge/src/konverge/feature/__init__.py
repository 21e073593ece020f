"""Gates: whether a feature is on.

A gate is asked, never told: a component, a resource or a mutation carries one, and the pass asks it each time. What
comes in is what the author knows when the gate is made (a version, the values of a spec), what goes out is one boolean
or an error. A gate keeps no state; combining one gives a new one.

A `VersionRange` understands semantic versions and the usual syntax of ranges; for any other scheme bring a
`VersionConstraint` of your own.
"""

from konverge.feature.gates import BooleanGate, Gate, VersionConstraint, VersionGate, is_enabled
from konverge.feature.version_ranges import VersionRange

__all__ = ["BooleanGate", "Gate", "VersionConstraint", "VersionGate", "VersionRange", "is_enabled"]
