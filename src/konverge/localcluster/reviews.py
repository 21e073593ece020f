"""Questions about who may do what. Everybody may do everything here: the server listens on loopback alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from konverge.kube import Object

__all__ = ["REVIEWS", "Review", "review"]

_USER = "embedded-admin"
_GROUPS = ("system:masters", "system:authenticated")


class Review(NamedTuple):
    """A kind of question: created, answered, and never stored."""

    group: str
    version: str
    plural: str
    kind: str


REVIEWS = (
    Review("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"),
    Review("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    Review("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    Review("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"),
)


def review(kind: Review, body: Any) -> Object:
    """The answer to a question."""
    asked = body if isinstance(body, Mapping) else {}
    return {
        "kind": kind.kind,
        "apiVersion": f"{kind.group}/{kind.version}",
        "metadata": {},
        "spec": asked.get("spec") or {},
        "status": _status(kind.kind),
    }


def _status(kind: str) -> Object:
    match kind:
        case "SelfSubjectReview":
            return {"userInfo": {"username": _USER, "groups": list(_GROUPS)}}
        case "SelfSubjectRulesReview":
            return {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        case _:
            return {"allowed": True, "reason": "the embedded cluster allows everything"}
