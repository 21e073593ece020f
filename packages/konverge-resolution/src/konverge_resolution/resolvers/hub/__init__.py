"""Definitions from a hub, a catalogue of them, by name and a version or a range of versions.

Several hubs can be set up, which are asked in turn (`hub_order`). Of each, one call lists the versions that there are,
when a range is asked for, and one gets the definition (`resolver`); `hub_api` has the URLs and answers of the two types
of hub.
"""

from konverge_resolution.resolvers.hub.resolver import HubResolver

__all__ = ["HubResolver"]
