"""Resolver of definitions on a hub (a catalog), by name and a version or a range of versions.

Several hubs can be configured and are tried in order (`hub_order`). On each hub, one request lists the versions for a
range, and one fetches the definition (`resolver`); `hub_api` has the URLs and responses of the two types of hub.
"""

from konverge_resolution._internal.resolvers.hub.resolver import HubResolver

__all__ = ["HubResolver"]
