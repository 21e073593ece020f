"""Prerequisites of a component and their results.

::

    from konverge import prerequisites

    builder.with_prerequisite(prerequisites.depends_on("DatabaseReady"))

The ``check`` of a custom `konverge.Prerequisite` returns ``prerequisites.MET`` or ``prerequisites.not_met(reason)``.
"""

from konverge._internal.component.prerequisites import MET, depends_on, not_met

__all__ = ["MET", "depends_on", "not_met"]
