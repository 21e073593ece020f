"""The paths that are no objects: version, health, discovery, OpenAPI, reviews."""

from __future__ import annotations

import hashlib

from konverge.localcluster import discovery, failures, openapi
from konverge.localcluster.access.reviews import REVIEWS, Reviews
from konverge.localcluster.access.users import User
from konverge.localcluster.answers import Answer, Request, json_answer
from konverge.localcluster.media import accepts, decode_body
from konverge.localcluster.resources import Resource, Resources

__all__ = ["Documents"]

_VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3+konverge",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "python",
}
_HEALTH = frozenset({"healthz", "livez", "readyz"})
_FIXED_PATHS = ("/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version")


class Documents:
    """Answers requests for documents.

    Args:
        resources: What is served.
        reviews: Answers questions.
    """

    def __init__(self, resources: Resources, reviews: Reviews) -> None:
        self._resources = resources
        self._reviews = reviews

    def answer(self, request: Request, user: User) -> Answer:
        """The document of a path, or the answer to a question.

        Raises:
            NotFoundError: There is none.
            ApiError: The method means nothing there.
        """
        steps = [step for step in request.path.split("/") if step]
        if request.method == "POST":
            return self._review(steps, request, user)
        if request.method != "GET":
            # Below a version there are resources alone, and the path names none of them.
            raise failures.unknown_path() if steps[3:] else failures.unsupported_method()
        match steps:
            case []:
                return json_answer({"paths": sorted([*_FIXED_PATHS, *self._group_paths()])})
            case ["version"]:
                return json_answer(_VERSION)
            case [health, *_] if health in _HEALTH:
                return Answer(200, b"ok", {"content-type": "text/plain; charset=utf-8"})
            case ["api" | "apis" as root]:
                return self._root(request, is_core=root == "api")
            case ["api", version]:
                return self._found(discovery.api_resource_list("", version, self._resources))
            case ["apis", group]:
                return self._found(discovery.api_group(group, self._resources))
            case ["apis", group, version]:
                return self._found(discovery.api_resource_list(group, version, self._resources))
            case ["openapi", "v3"]:
                found = dict.fromkeys((each.gvk.group, each.gvk.version) for each in self._resources)
                return json_answer(openapi.index(sorted(found), self._resources.revision))
            case ["openapi", "v3", "api", version]:
                return self._open_api("", version)
            case ["openapi", "v3", "apis", group, version]:
                return self._open_api(group, version)
            case _:
                raise failures.unknown_path()

    def _group_paths(self) -> list[str]:
        return [
            f"/apis/{group}/{version}" if group else f"/api/{version}"
            for group, version in discovery.group_versions(self._resources)
        ]

    def _root(self, request: Request, *, is_core: bool) -> Answer:
        for each in accepts(request.headers.get("accept", "")):
            parameters = each.parameters
            version = parameters.get("v", "")
            if parameters.get("as") == "APIGroupDiscoveryList" and version in ("v2", "v2beta1"):
                content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                found = discovery.aggregated(self._resources, is_core=is_core, version=version)
                return _tagged(json_answer(found, content_type=content_type), request)
        return json_answer(discovery.api_versions() if is_core else discovery.api_group_list(self._resources))

    def _open_api(self, group: str, version: str) -> Answer:
        found: list[Resource] = [
            each for each in self._resources if (each.gvk.group, each.gvk.version) == (group, version)
        ]
        if not found:
            raise failures.unknown_path()
        return json_answer(openapi.document(found))

    @staticmethod
    def _found(document: dict[str, object] | None) -> Answer:
        if document is None:
            raise failures.unknown_path()
        return json_answer(document)

    def _review(self, steps: list[str], request: Request, user: User) -> Answer:
        namespace = ""
        match steps:
            case ["apis", group, version, "namespaces", namespace, plural]:
                pass
            case ["apis", group, version, plural]:
                pass
            case _:
                raise failures.unknown_path()
        for kind in REVIEWS:
            if (kind.group, kind.version, kind.plural, kind.namespaced) == (group, version, plural, bool(namespace)):
                content_type = request.headers.get("content-type", "")
                body = decode_body(content_type, request.body, "Ignore", kind=kind.kind)
                return json_answer(self._reviews.answer(kind, body.value, user, namespace), 201)
        raise failures.unknown_path()


def _tagged(answer: Answer, request: Request) -> Answer:
    """The answer with its tag, or 304 for a client that has it already."""
    tag = f'"{hashlib.sha256(answer.body).hexdigest().upper()}"'
    headers = {**answer.headers, "etag": tag, "vary": "Accept", "cache-control": "public"}
    if request.headers.get("if-none-match") == tag:
        return Answer(304, b"", headers)
    return Answer(answer.status, answer.body, headers)
