"""The paths that are no objects: version, health, discovery, OpenAPI, reviews."""

from __future__ import annotations

import hashlib

from konverge_cluster.embedded import api_errors, discovery, openapi
from konverge_cluster.embedded.access.access_reviews import REVIEWS, AccessReviewHandler
from konverge_cluster.embedded.access.users import User
from konverge_cluster.embedded.content_negotiation import decode_body, parse_accept
from konverge_cluster.embedded.messages import ServerRequest, ServerResponse, build_json_response
from konverge_cluster.embedded.resource_registry import ResourceRegistry, ServedResource

__all__ = ["NonResourceHandler"]

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


class NonResourceHandler:
    """Answers requests for documents.

    Args:
        resources: What is served.
        reviews: Answers questions.
    """

    def __init__(self, resources: ResourceRegistry, reviews: AccessReviewHandler) -> None:
        self._resources = resources
        self._reviews = reviews

    def handle(self, request: ServerRequest, user: User) -> ServerResponse:
        """The document of a path, or the answer to a question.

        Raises:
            NotFoundError: There is none.
            ApiError: The method means nothing there.
        """
        steps = [step for step in request.path.split("/") if step]
        if request.method == "POST":
            return self._create_review(steps, request, user)
        if request.method != "GET":
            # Below a version there are resources alone, and the path names none of them.
            raise api_errors.new_unknown_path() if steps[3:] else api_errors.new_method_not_allowed()
        match steps:
            case []:
                return build_json_response({"paths": sorted([*_FIXED_PATHS, *self._list_group_paths()])})
            case ["version"]:
                return build_json_response(_VERSION)
            case [health, *_] if health in _HEALTH:
                return ServerResponse(200, b"ok", {"content-type": "text/plain; charset=utf-8"})
            case ["api" | "apis" as root]:
                return self._build_root(request, is_core=root == "api")
            case ["api", version]:
                return self._require_document(discovery.build_api_resource_list("", version, self._resources))
            case ["apis", group]:
                return self._require_document(discovery.build_api_group(group, self._resources))
            case ["apis", group, version]:
                return self._require_document(discovery.build_api_resource_list(group, version, self._resources))
            case ["openapi", "v3"]:
                found = dict.fromkeys((each.gvk.group, each.gvk.version) for each in self._resources)
                return build_json_response(openapi.build_index(sorted(found), self._resources.revision))
            case ["openapi", "v3", "api", version]:
                return self._build_open_api("", version)
            case ["openapi", "v3", "apis", group, version]:
                return self._build_open_api(group, version)
            case _:
                raise api_errors.new_unknown_path()

    def _list_group_paths(self) -> list[str]:
        return [
            f"/apis/{group}/{version}" if group else f"/api/{version}"
            for group, version in discovery.list_group_versions(self._resources)
        ]

    def _build_root(self, request: ServerRequest, *, is_core: bool) -> ServerResponse:
        for each in parse_accept(request.headers.get("accept", "")):
            parameters = each.parameters
            version = parameters.get("v", "")
            if parameters.get("as") == "APIGroupDiscoveryList" and version in ("v2", "v2beta1"):
                content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                found = discovery.build_aggregated_discovery(self._resources, is_core=is_core, version=version)
                return _with_etag(build_json_response(found, content_type=content_type), request)
        return build_json_response(
            discovery.build_api_versions() if is_core else discovery.build_api_group_list(self._resources)
        )

    def _build_open_api(self, group: str, version: str) -> ServerResponse:
        found: list[ServedResource] = [
            each for each in self._resources if (each.gvk.group, each.gvk.version) == (group, version)
        ]
        if not found:
            raise api_errors.new_unknown_path()
        return build_json_response(openapi.build_document(found))

    @staticmethod
    def _require_document(document: dict[str, object] | None) -> ServerResponse:
        if document is None:
            raise api_errors.new_unknown_path()
        return build_json_response(document)

    def _create_review(self, steps: list[str], request: ServerRequest, user: User) -> ServerResponse:
        namespace = ""
        match steps:
            case ["apis", group, version, "namespaces", namespace, plural]:
                pass
            case ["apis", group, version, plural]:
                pass
            case _:
                raise api_errors.new_unknown_path()
        for kind in REVIEWS:
            if (kind.group, kind.version, kind.plural, kind.namespaced) == (group, version, plural, bool(namespace)):
                content_type = request.headers.get("content-type", "")
                body = decode_body(content_type, request.body, "Ignore", kind=kind.kind)
                return build_json_response(self._reviews.create_review(kind, body.value, user, namespace), 201)
        raise api_errors.new_unknown_path()


def _with_etag(answer: ServerResponse, request: ServerRequest) -> ServerResponse:
    """The answer with its tag, or 304 for a client that has it already."""
    tag = f'"{hashlib.sha256(answer.body).hexdigest().upper()}"'
    headers = {**answer.headers, "etag": tag, "vary": "Accept", "cache-control": "public"}
    if request.headers.get("if-none-match") == tag:
        return ServerResponse(304, b"", headers)
    return ServerResponse(answer.status, answer.body, headers)
