"""The paths without resources: version, health, discovery, OpenAPI and reviews."""

from __future__ import annotations

import hashlib

from konverge_cluster._internal.embedded import api_errors, discovery, openapi
from konverge_cluster._internal.embedded.access.access_reviews import REVIEWS, AccessReviewHandler
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.content_negotiation import decode_body, parse_accept
from konverge_cluster._internal.embedded.messages import ServerRequest, ServerResponse, build_json_response
from konverge_cluster._internal.embedded.resource_registry import ResourceRegistry, ServedResource

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
    """Answers requests for these documents and reviews.

    Args:
        resources: The served resources.
        reviews: The handler of access reviews.
    """

    def __init__(self, resources: ResourceRegistry, reviews: AccessReviewHandler) -> None:
        self._resources = resources
        self._reviews = reviews

    def handle(self, request: ServerRequest, user: User) -> ServerResponse:
        """Return the document of a path, or the result of a review.

        Raises:
            NotFoundError: The path does not exist.
            ApiError: The path does not support the method.
        """
        steps = [step for step in request.path.split("/") if step]
        if request.method == "POST":
            return self._create_review(steps, request, user)
        if request.method != "GET":
            # Below a version only resources exist, and the path does not name one.
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
                group_versions = dict.fromkeys(
                    (resource.gvk.group, resource.gvk.version) for resource in self._resources
                )
                return build_json_response(openapi.build_index(sorted(group_versions), self._resources.revision))
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
        for accepted in parse_accept(request.headers.get("accept", "")):
            parameters = accepted.parameters
            version = parameters.get("v", "")
            if parameters.get("as") == "APIGroupDiscoveryList" and version in ("v2", "v2beta1"):
                content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                document = discovery.build_aggregated_discovery(self._resources, is_core=is_core, version=version)
                return _with_etag(build_json_response(document, content_type=content_type), request)
        return build_json_response(
            discovery.build_api_versions() if is_core else discovery.build_api_group_list(self._resources)
        )

    def _build_open_api(self, group: str, version: str) -> ServerResponse:
        group_resources: list[ServedResource] = [
            resource for resource in self._resources if (resource.gvk.group, resource.gvk.version) == (group, version)
        ]
        if not group_resources:
            raise api_errors.new_unknown_path()
        return build_json_response(openapi.build_document(group_resources))

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


def _with_etag(response: ServerResponse, request: ServerRequest) -> ServerResponse:
    """Return the response with its ETag, or 304 for a client that already has the document."""
    tag = f'"{hashlib.sha256(response.body).hexdigest().upper()}"'
    headers = {**response.headers, "etag": tag, "vary": "Accept", "cache-control": "public"}
    if request.headers.get("if-none-match") == tag:
        return ServerResponse(304, b"", headers)
    return ServerResponse(response.status, response.body, headers)
