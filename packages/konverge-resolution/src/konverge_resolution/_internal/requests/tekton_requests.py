"""Format of Tekton's own requests, ``resolution.tekton.dev/v1beta1``, served as Tekton's resolvers serve them.

A label names the resolver; parameters are a list whose values are texts, lists or mappings. The condition has only
Tekton's reasons, since its controllers branch on them. The exact reason is in an annotation of the status and at the
beginning of the message. The cluster must have Tekton's CRD; this package never creates it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from konverge._internal.crd import UnstructuredResource, unstructured_resource
from konverge._internal.kube import Condition, GroupVersionKind, Object, format_micro_time
from konverge_resolution._internal.concise_references import parse_concise_reference
from konverge_resolution._internal.engine import ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Reference, Value
from konverge_resolution._internal.requests.request_format import (
    IN_PROGRESS,
    SUCCEEDED,
    RequestSpec,
    build_request_state,
    format_service_account,
    get_status,
    merge_condition,
)
from konverge_resolution._internal.requests.request_lifecycle import RequestState

__all__ = ["REASON_ANNOTATION", "TEKTON_REQUEST", "TYPE_LABEL", "TektonRequest", "TektonRequestFormat"]

TEKTON_REQUEST = GroupVersionKind("resolution.tekton.dev", "v1beta1", "ResolutionRequest")
"""Kind of Tekton's requests."""

TYPE_LABEL = "resolution.tekton.dev/type"
"""Label with the name of the resolver."""

REASON_ANNOTATION = "resolution.konverge.dev/reason"
"""Annotation of the status with the exact reason of a failure."""

_DEADLINE = "resolution.konverge.dev/deadline"
_POLICY_SOURCE = "resolution.konverge.dev/policy-source"
_FAILED = "ResolutionFailed"
_TIMED_OUT = "ResolutionTimedOut"
_SERVICE_ACCOUNT = "serviceAccount"

TektonRequest: type[UnstructuredResource] = unstructured_resource(TEKTON_REQUEST, None, plural="resolutionrequests")
"""Class for the controller of Tekton's requests."""


class TektonRequestFormat:
    """Format of Tekton's requests (`requests.request_format.RequestFormat`)."""

    gvk = TEKTON_REQUEST
    separates_content = False

    def parse_spec(self, obj: Object, default_resolver: str) -> RequestSpec:
        """Parse the resolver and the reference of the request."""
        metadata = obj["metadata"]
        resolver = (metadata.get("labels") or {}).get(TYPE_LABEL)
        if not isinstance(resolver, str) or not resolver:
            message = f"label {TYPE_LABEL}: expected the name of a resolver, found none"
            return RequestSpec("", error=ResolutionError(Reason.INVALID_PARAMETERS, message))
        spec = obj.get("spec")
        listed = spec.get("params") if isinstance(spec, dict) else None
        params: dict[str, Value] = {}
        for place, entry in enumerate(listed if isinstance(listed, list) else []):
            name = entry.get("name") if isinstance(entry, dict) else None
            if not isinstance(name, str) or "value" not in entry or name in params:
                message = f"spec.params[{place}]: expected a unique name and a value"
                return RequestSpec(resolver, error=ResolutionError(Reason.INVALID_PARAMETERS, message))
            params[name] = entry["value"]  # `Reference.check` checks its type
        if isinstance(spec, dict) and spec.get("url"):
            try:
                params |= _parse_url(spec["url"], resolver, params)
            except ResolutionError as error:
                return RequestSpec(resolver, error=error)
        account = params.get(_SERVICE_ACCOUNT)
        user = format_service_account(
            metadata["namespace"], account if isinstance(account, str) and account else "default"
        )
        return RequestSpec(resolver, Reference(resolver, params), user)

    def parse_state(self, obj: Object) -> RequestState:
        """Return the state of the request."""
        return build_request_state(obj, deadline=_get_annotations(obj).get(_DEADLINE), finished=None)

    def build_pending_status(self, obj: Object, resolver: str, deadline: datetime, now: datetime) -> Object:
        """Build the status of a request that has started.

        The schema of some versions requires data, source and refSource from the beginning.
        """
        return {
            "conditions": self._build_conditions(
                obj, "Unknown", IN_PROGRESS, f"resolver {resolver!r} fetches the definition", now
            ),
            "observedGeneration": obj["metadata"].get("generation"),
            "annotations": {_DEADLINE: format_micro_time(deadline)},
            "data": "",
            "source": {},
            "refSource": {},
        }

    def build_success_status(
        self, obj: Object, result: ResolutionResult, started: datetime, now: datetime, *, config_map_name: str = ""
    ) -> Object:
        """Build the status of a request with its result."""
        content = result.resolved
        source: Object = {"uri": content.source.uri, "digest": dict(content.source.digest)}
        if content.source.entry_point:
            source["entryPoint"] = content.source.entry_point
        annotations = {**content.annotations, _DEADLINE: None}
        if result.is_redirected:
            annotations[_POLICY_SOURCE] = result.policy_source
        return {
            "conditions": self._build_conditions(obj, "True", "", "", now),
            "observedGeneration": obj["metadata"].get("generation"),
            "data": base64.b64encode(content.data).decode("ascii"),
            "source": source,
            "refSource": source,
            "annotations": annotations,
        }

    def build_failure_status(
        self, obj: Object, error: ResolutionError, started: datetime | None, now: datetime
    ) -> Object:
        """Build the status of a failed request."""
        reason = _TIMED_OUT if error.reason is Reason.TIMED_OUT else _FAILED
        message = f"{error.reason.value}: {error.message}"
        return {
            "conditions": self._build_conditions(obj, "False", reason, message, now),
            "observedGeneration": obj["metadata"].get("generation"),
            "annotations": {REASON_ANNOTATION: error.reason.value, _DEADLINE: None},
            "data": "",
            "source": {},
            "refSource": {},
        }

    def build_completed_status(self, obj: Object, now: datetime) -> Object:
        """Build the status of a request that has content but no condition for it yet."""
        return {"conditions": self._build_conditions(obj, "True", "", "", now), "annotations": {_DEADLINE: None}}

    def _build_conditions(self, obj: Object, status: str, reason: str, message: str, now: datetime) -> list[Any]:
        listed = merge_condition(obj, Condition(SUCCEEDED, status, reason, message[:4096]), now)
        # Tekton's conditions omit empty fields.
        return [{name: value for name, value in entry.items() if value != ""} for entry in listed]


def _get_annotations(obj: Object) -> dict[str, Any]:
    annotations = get_status(obj).get("annotations")
    return annotations if isinstance(annotations, dict) else {}


def _parse_url(url: object, resolver: str, params: Mapping[str, Value]) -> dict[str, str]:
    """Return the parameters of Tekton's concise form, which excludes others (TEP-0154).

    Raises:
        ResolutionError: ``InvalidParams``: it is not a concise reference for this resolver, or there are parameters.
    """
    if params:
        raise ResolutionError(Reason.INVALID_PARAMETERS, "spec: expected either url or params, found both")
    try:
        named, found = parse_concise_reference(str(url))
    except ResolutionError as error:
        raise error.with_message(f"spec.url: {error.message}") from None
    if named != resolver:
        message = (
            f"spec.url: expected a URL of resolver {resolver[:80]!r} as in label {TYPE_LABEL}, found one of {named!r}"
        )
        raise ResolutionError(Reason.INVALID_PARAMETERS, message)
    return found
