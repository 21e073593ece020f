"""Reviews of identity and permissions: created, answered, and never stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from konverge._internal.kube import Object, ObjectKey, format_time
from konverge.clock import Clock
from konverge.errors import BadRequestError
from konverge_cluster._internal.embedded.access.access_filter import AccessFilter
from konverge_cluster._internal.embedded.access.request_attributes import RequestAttributes
from konverge_cluster._internal.embedded.access.service_account_tokens import AUDIENCE
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.validation.field_errors import FieldError, field_invalid, new_invalid

__all__ = ["REVIEWS", "AccessReviewHandler", "ReviewKind"]

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_TOKEN_SECONDS, _SHORTEST_SECONDS = 3600, 600


class ReviewKind(NamedTuple):
    """A kind of access or identity review."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False


REVIEWS = (
    ReviewKind(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview"),
    ReviewKind(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview"),
    ReviewKind(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    ReviewKind(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ReviewKind(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ReviewKind(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview"),
)


class AccessReviewHandler:
    """Creates reviews and fills in their results.

    Args:
        gate: The filter with the known tokens and the authorizer.
        clock: The clock for timestamps.
    """

    def __init__(self, gate: AccessFilter, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock

    def create_review(self, kind: ReviewKind, body: Any, user: User, namespace: str = "") -> Object:
        """Return a review with its result.

        Args:
            kind: The kind of the review.
            body: The review from the request.
            user: The user who sends the request.
            namespace: The namespace in the path.

        Raises:
            BadRequestError: A required field is absent.
            InvalidError: The review has no attributes, or both resource and path attributes.
        """
        requested_spec = body.get("spec") if isinstance(body, Mapping) else None
        spec: Object = dict(requested_spec) if isinstance(requested_spec, Mapping) else {}
        review: Object = {"kind": kind.kind, "apiVersion": f"{kind.group}/{kind.version}", "metadata": {}}
        match kind.kind:
            case "SelfSubjectReview":
                review["metadata"] = {"creationTimestamp": format_time(self._clock.now())}
                return review | {"status": {"userInfo": user.to_user_info()}}
            case "TokenReview":
                status = self._review_token(spec)
            case "SelfSubjectRulesReview":
                status, spec = self._review_rules(spec, user), {}
            case "SelfSubjectAccessReview":
                status = self._review_access(spec, user)
            case _:
                status = self._review_subject(spec, namespace if kind.namespaced else "")
                if kind.namespaced:
                    review["metadata"] = {"namespace": namespace}
        return review | {"spec": spec, "status": status}

    def create_token(self, account: Object, body: Any) -> Object:
        """Return a TokenRequest for a ServiceAccount with its token.

        Raises:
            InvalidError: The requested lifetime is too short.
        """
        requested_spec = body.get("spec") if isinstance(body, Mapping) else None
        spec: Mapping[str, Any] = requested_spec if isinstance(requested_spec, Mapping) else {}
        seconds = spec.get("expirationSeconds") or _TOKEN_SECONDS
        if not isinstance(seconds, int) or seconds < _SHORTEST_SECONDS:
            detail = "may not specify a duration less than 10 minutes"
            error = field_invalid("spec.expirationSeconds", seconds, detail)
            raise new_invalid(_AUTHENTICATION, "TokenRequest", "", [error])
        audiences = [str(audience) for audience in spec.get("audiences") or (AUDIENCE,)]
        metadata, now = account["metadata"], self._clock.now()
        token = self._gate.tokens.issue(ObjectKey.of(account), metadata["uid"], audiences, seconds)
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{_AUTHENTICATION}/v1",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "creationTimestamp": format_time(now),
            },
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": token, "expirationTimestamp": _format_expiry(now, seconds)},
        }

    def _review_token(self, spec: Mapping[str, Any]) -> Object:
        token = spec.get("token")
        if not token or not isinstance(token, str):
            raise BadRequestError("token is required for TokenReview in authentication")
        audiences = tuple(map(str, spec.get("audiences") or (AUDIENCE,)))
        user = self._gate.tokens.authenticate(token, audiences)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user.to_user_info(), "audiences": list(audiences)}

    def _review_rules(self, spec: Mapping[str, Any], user: User) -> Object:
        if not spec.get("namespace"):
            raise BadRequestError("no namespace on request")
        user_rules = self._gate.authorizer.list_rules(user, str(spec["namespace"]))
        status: Object = {
            "resourceRules": [rule for rule in user_rules.rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in user_rules.rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        return status | ({"evaluationError": user_rules.error} if user_rules.error else {})

    def _review_subject(self, spec: Mapping[str, Any], namespace: str) -> Object:
        groups = spec.get("groups") or []
        if not spec.get("user") and not groups:
            raise _new_invalid_review(field_invalid("spec.user", "", "at least one of user or group must be specified"))
        attributes = spec.get("resourceAttributes")
        requested = str(attributes.get("namespace") or "") if isinstance(attributes, Mapping) else ""
        if namespace and requested != namespace:
            raise _new_invalid_review(
                field_invalid("spec.resourceAttributes.namespace", requested, "must match metadata.namespace")
            )
        return self._review_access(spec, User(str(spec.get("user") or ""), tuple(map(str, groups))))

    def _review_access(self, spec: Mapping[str, Any], user: User) -> Object:
        decision = self._gate.authorizer.authorize(user, _parse_spec(spec))
        return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _parse_spec(spec: Mapping[str, Any]) -> RequestAttributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(resource, Mapping) and isinstance(path, Mapping):
        value = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        detail = "cannot be specified in combination with resourceAttributes"
        raise _new_invalid_review(field_invalid("spec.nonResourceAttributes", value, detail))
    if isinstance(path, Mapping):
        return RequestAttributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    if not isinstance(resource, Mapping):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _new_invalid_review(field_invalid("spec.resourceAttributes", None, detail))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return RequestAttributes(**{name: str(resource.get(name) or "") for name in names})


def _new_invalid_review(error: FieldError) -> Exception:
    return new_invalid(_AUTHORIZATION, "", "", [error])


def _format_expiry(now: datetime, seconds: int) -> str:
    return format_time(now + timedelta(seconds=seconds))
