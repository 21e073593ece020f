"""Questions about who somebody is and what they may do: created, answered, and never stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from konverge.clock import Clock
from konverge.errors import BadRequestError
from konverge.kube import Object, ObjectKey, format_time
from konverge_cluster.embedded.access.access_filter import AccessFilter
from konverge_cluster.embedded.access.request_attributes import RequestAttributes
from konverge_cluster.embedded.access.service_account_tokens import AUDIENCE
from konverge_cluster.embedded.access.users import User
from konverge_cluster.embedded.validation.field_errors import FieldError, field_invalid, new_invalid

__all__ = ["REVIEWS", "AccessReviewHandler", "ReviewKind"]

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_TOKEN_SECONDS, _SHORTEST_SECONDS = 3600, 600


class ReviewKind(NamedTuple):
    """A kind of question."""

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
    """Answers the questions.

    Args:
        gate: Who is who, and who may do what.
        clock: Dates the answers.
    """

    def __init__(self, gate: AccessFilter, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock

    def create_review(self, kind: ReviewKind, body: Any, user: User, namespace: str = "") -> Object:
        """The answer to a question.

        Args:
            kind: What is asked.
            body: The question.
            user: Who asks.
            namespace: The namespace in the path.

        Raises:
            BadRequestError: It lacks what it must have.
            InvalidError: It asks for nothing, or for two things at once.
        """
        asked = body.get("spec") if isinstance(body, Mapping) else None
        spec: Object = dict(asked) if isinstance(asked, Mapping) else {}
        answer: Object = {"kind": kind.kind, "apiVersion": f"{kind.group}/{kind.version}", "metadata": {}}
        match kind.kind:
            case "SelfSubjectReview":
                answer["metadata"] = {"creationTimestamp": format_time(self._clock.now())}
                return answer | {"status": {"userInfo": user.to_user_info()}}
            case "TokenReview":
                status = self._review_token(spec)
            case "SelfSubjectRulesReview":
                status, spec = self._review_rules(spec, user), {}
            case "SelfSubjectAccessReview":
                status = self._review_access(spec, user)
            case _:
                status = self._review_subject(spec, namespace if kind.namespaced else "")
                if kind.namespaced:
                    answer["metadata"] = {"namespace": namespace}
        return answer | {"spec": spec, "status": status}

    def create_token(self, account: Object, body: Any) -> Object:
        """The answer to a TokenRequest for a ServiceAccount.

        Raises:
            InvalidError: It wants to last too short a time.
        """
        asked = body.get("spec") if isinstance(body, Mapping) else None
        spec: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}
        seconds = spec.get("expirationSeconds") or _TOKEN_SECONDS
        if not isinstance(seconds, int) or seconds < _SHORTEST_SECONDS:
            told = "may not specify a duration less than 10 minutes"
            mistake = field_invalid("spec.expirationSeconds", seconds, told)
            raise new_invalid(_AUTHENTICATION, "TokenRequest", "", [mistake])
        audiences = [str(each) for each in spec.get("audiences") or (AUDIENCE,)]
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
        found = self._gate.authorizer.list_rules(user, str(spec["namespace"]))
        status: Object = {
            "resourceRules": [rule for rule in found.rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in found.rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        return status | ({"evaluationError": found.error} if found.error else {})

    def _review_subject(self, spec: Mapping[str, Any], namespace: str) -> Object:
        groups = spec.get("groups") or []
        if not spec.get("user") and not groups:
            raise _new_invalid_review(field_invalid("spec.user", "", "at least one of user or group must be specified"))
        wanted = spec.get("resourceAttributes")
        found = str(wanted.get("namespace") or "") if isinstance(wanted, Mapping) else ""
        if namespace and found != namespace:
            raise _new_invalid_review(
                field_invalid("spec.resourceAttributes.namespace", found, "must match metadata.namespace")
            )
        return self._review_access(spec, User(str(spec.get("user") or ""), tuple(map(str, groups))))

    def _review_access(self, spec: Mapping[str, Any], user: User) -> Object:
        decision = self._gate.authorizer.authorize(user, _parse_spec(spec))
        return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _parse_spec(spec: Mapping[str, Any]) -> RequestAttributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(resource, Mapping) and isinstance(path, Mapping):
        found = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        told = "cannot be specified in combination with resourceAttributes"
        raise _new_invalid_review(field_invalid("spec.nonResourceAttributes", found, told))
    if isinstance(path, Mapping):
        return RequestAttributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    if not isinstance(resource, Mapping):
        told = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _new_invalid_review(field_invalid("spec.resourceAttributes", None, told))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return RequestAttributes(**{name: str(resource.get(name) or "") for name in names})


def _new_invalid_review(mistake: FieldError) -> Exception:
    return new_invalid(_AUTHORIZATION, "", "", [mistake])


def _format_expiry(now: datetime, seconds: int) -> str:
    return format_time(now + timedelta(seconds=seconds))
