"""Results of a guard, the function that decides whether a resource and all later ones may be applied.

::

    from konverge import guards

    def check_license(obj):
        return guards.UNBLOCKED if license_is_valid() else guards.blocked("waiting for a license")
"""

from konverge._internal.primitives.resource_protocol import UNBLOCKED, blocked

__all__ = ["UNBLOCKED", "blocked"]
