"""Options of `konverge.ComponentBuilder.with_resource`: how a component treats a resource.

::

    from konverge import options

    builder.with_resource(exporter, options.gated_by(gate), options.auxiliary())
"""

from konverge._internal.component.resource_options import (
    Option,
    adopt,
    auxiliary,
    block_on_absence,
    block_on_foreign_controller,
    delete,
    delete_when,
    deletion_wave,
    gated_by,
    ignore_if_absent,
    orphan_when,
    read_only,
    suppress_grace_inconsistency_warning,
    unowned,
)

__all__ = [
    "Option",
    "adopt",
    "auxiliary",
    "block_on_absence",
    "block_on_foreign_controller",
    "delete",
    "delete_when",
    "deletion_wave",
    "gated_by",
    "ignore_if_absent",
    "orphan_when",
    "read_only",
    "suppress_grace_inconsistency_warning",
    "unowned",
]
