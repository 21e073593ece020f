"""The resources that a real API server serves and this one does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from urllib.parse import unquote

import msgspec

from konverge_cluster._internal.embedded.access.access_reviews import REVIEWS
from konverge_cluster._internal.embedded.builtin_resources import list_builtin_resources

__all__ = ["find_unserved", "iter_unserved", "load_real_resources"]


class RealResource(msgspec.Struct, frozen=True):
    """A resource of the real API server: its kind and its subresources."""

    kind: str
    subresources: tuple[str, ...] = ()


@cache
def load_real_resources() -> Mapping[str, Mapping[str, RealResource]]:
    """Return the resources of a real API server (v1.36) by apiVersion and plural, as recorded by a test."""
    data = resources.files("konverge_cluster._internal.embedded.limitations").joinpath("real_resources.json")
    return msgspec.json.decode(data.read_bytes(), type=dict[str, dict[str, RealResource]])


@cache
def _load_served() -> Mapping[tuple[str, str], frozenset[str]]:
    """Return the subresources of each served resource, by apiVersion and plural."""
    served = {
        (resource.gvk.api_version, resource.mapping.plural): resource.mapping.subresources
        for resource in list_builtin_resources()
    }
    return served | {(f"{review.group}/{review.version}", review.plural): frozenset() for review in REVIEWS}


def iter_unserved() -> Iterator[tuple[str, str, str]]:
    """Yield the apiVersion, plural and kind of each resource and subresource (``pods/exec``) not served here."""
    served = _load_served()
    for api_version, listed in load_real_resources().items():
        for plural, resource in listed.items():
            own = served.get((api_version, plural))
            if own is None:
                yield api_version, plural, resource.kind
                continue
            for name in resource.subresources:
                if name not in own:
                    yield api_version, f"{plural}/{name}", resource.kind


def find_unserved(path: str) -> str:
    """Return the resource that a real API server serves under a path and this one does not; empty for any other path.

    Args:
        path: The percent-encoded path of a request.
    """
    match [unquote(step) for step in path.strip("/").split("/")]:
        case ["api", version, *steps]:
            api_version = version
        case ["apis", group, version, *steps]:
            api_version = f"{group}/{version}"
        case _:
            return ""
    if steps[:1] == ["namespaces"] and len(steps) > 2:
        steps = steps[2:]
    names = {steps[0], "/".join((steps[0], *steps[2:3]))} if steps else set()
    for unserved_version, name, _ in iter_unserved():
        if unserved_version == api_version and name in names:
            return f"{name} of {api_version}"
    return ""
