"""Questions about who somebody is and what they may do: created, answered, and never stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from konverge.clock import Clock
from konverge.errors import BadRequestError
from konverge.kube import Object, ObjectKey, format_time
from konverge.localcluster.access.attributes import Attributes
from konverge.localcluster.access.gate import Gate
from konverge.localcluster.access.tokens import AUDIENCE
from konverge.localcluster.access.users import User
from konverge.localcluster.validation.mistakes import Mistake, invalid, refusal

__all__ = ["REVIEWS", "Review", "Reviews"]

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_TOKEN_SECONDS, _SHORTEST_SECONDS = 3600, 600


class Review(NamedTuple):
    """A kind of question."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False


REVIEWS = (
    Review(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview"),
    Review(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview"),
    Review(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    Review(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    Review(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    Review(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview"),
)


class Reviews:
    """Answers the questions.

    Args:
        gate: Who is who, and who may do what.
        clock: Dates the answers.
    """

    def __init__(self, gate: Gate, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock

    def answer(self, kind: Review, body: Any, user: User, namespace: str = "") -> Object:
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
                return answer | {"status": {"userInfo": user.info()}}
            case "TokenReview":
                status = self._token_status(spec)
            case "SelfSubjectRulesReview":
                status, spec = self._rules_status(spec, user), {}
            case "SelfSubjectAccessReview":
                status = self._access_status(spec, user)
            case _:
                status = self._subject_status(spec, namespace if kind.namespaced else "")
                if kind.namespaced:
                    answer["metadata"] = {"namespace": namespace}
        return answer | {"spec": spec, "status": status}

    def token(self, account: Object, body: Any) -> Object:
        """The answer to a TokenRequest for a ServiceAccount.

        Raises:
            InvalidError: It wants to last too short a time.
        """
        asked = body.get("spec") if isinstance(body, Mapping) else None
        spec: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {}
        seconds = spec.get("expirationSeconds") or _TOKEN_SECONDS
        if not isinstance(seconds, int) or seconds < _SHORTEST_SECONDS:
            told = "may not specify a duration less than 10 minutes"
            mistake = invalid("spec.expirationSeconds", seconds, told)
            raise refusal(_AUTHENTICATION, "TokenRequest", "", [mistake])
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
            "status": {"token": token, "expirationTimestamp": _after(now, seconds)},
        }

    def _token_status(self, spec: Mapping[str, Any]) -> Object:
        token = spec.get("token")
        if not token or not isinstance(token, str):
            raise BadRequestError("token is required for TokenReview in authentication")
        audiences = tuple(map(str, spec.get("audiences") or (AUDIENCE,)))
        user = self._gate.tokens.user_of(token, audiences)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user.info(), "audiences": list(audiences)}

    def _rules_status(self, spec: Mapping[str, Any], user: User) -> Object:
        if not spec.get("namespace"):
            raise BadRequestError("no namespace on request")
        found = self._gate.authorizer.rules_of(user, str(spec["namespace"]))
        status: Object = {
            "resourceRules": [rule for rule in found.rules if "nonResourceURLs" not in rule],
            "nonResourceRules": [rule for rule in found.rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        return status | ({"evaluationError": found.problem} if found.problem else {})

    def _subject_status(self, spec: Mapping[str, Any], namespace: str) -> Object:
        groups = spec.get("groups") or []
        if not spec.get("user") and not groups:
            raise _refused(invalid("spec.user", "", "at least one of user or group must be specified"))
        wanted = spec.get("resourceAttributes")
        found = str(wanted.get("namespace") or "") if isinstance(wanted, Mapping) else ""
        if namespace and found != namespace:
            raise _refused(invalid("spec.resourceAttributes.namespace", found, "must match metadata.namespace"))
        return self._access_status(spec, User(str(spec.get("user") or ""), tuple(map(str, groups))))

    def _access_status(self, spec: Mapping[str, Any], user: User) -> Object:
        decision = self._gate.authorizer.decide(user, _attributes(spec))
        return {"allowed": decision.allowed} | ({"reason": decision.reason} if decision.reason else {})


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(resource, Mapping) and isinstance(path, Mapping):
        found = {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
        told = "cannot be specified in combination with resourceAttributes"
        raise _refused(invalid("spec.nonResourceAttributes", found, told))
    if isinstance(path, Mapping):
        return Attributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    if not isinstance(resource, Mapping):
        told = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _refused(invalid("spec.resourceAttributes", None, told))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{name: str(resource.get(name) or "") for name in names})


def _refused(mistake: Mistake) -> Exception:
    return refusal(_AUTHORIZATION, "", "", [mistake])


def _after(now: datetime, seconds: int) -> str:
    return format_time(now + timedelta(seconds=seconds))
