"""Tekton's own requests, ``resolution.tekton.dev/v1beta1``, served as its resolvers serve them.

The resolver is named by a label, parameters are a list whose values are texts, lists or mappings. The condition has
Tekton's few reasons, since its controllers branch on them; the precise one is in an annotation of the status and at the
beginning of the message. Tekton's definition of the kind is the cluster's: nothing here makes one.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from konverge.crd import UnstructuredResource, unstructured_resource
from konverge.kube import Condition, GroupVersionKind, Object, format_micro_time
from konverge_resolution.engine import ResolutionResult
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Reference, Value
from konverge_resolution.requests.request_format import (
    IN_PROGRESS,
    SUCCEEDED,
    RequestSpec,
    build_request_state,
    format_service_account,
    get_status,
    merge_condition,
)
from konverge_resolution.requests.request_lifecycle import RequestState

__all__ = ["REASON_ANNOTATION", "TEKTON_REQUEST", "TYPE_LABEL", "TektonRequest", "TektonRequestFormat"]

TEKTON_REQUEST = GroupVersionKind("resolution.tekton.dev", "v1beta1", "ResolutionRequest")
"""The kind."""

TYPE_LABEL = "resolution.tekton.dev/type"
"""The label that names the resolver."""

REASON_ANNOTATION = "resolution.konverge.dev/reason"
"""The annotation of the status with the precise reason of a failure."""

_DEADLINE = "resolution.konverge.dev/deadline"
_POLICY_SOURCE = "resolution.konverge.dev/policy-source"
_FAILED = "ResolutionFailed"
_TIMED_OUT = "ResolutionTimedOut"
_SERVICE_ACCOUNT = "serviceAccount"

TektonRequest: type[UnstructuredResource] = unstructured_resource(TEKTON_REQUEST, None, plural="resolutionrequests")
"""The class under which an operator looks after them."""


class TektonRequestFormat:
    """How such a request is read and written (`konverge_resolution.requests.request_format.Dialect`)."""

    gvk = TEKTON_REQUEST
    separates_content = False

    def parse_spec(self, obj: Object, default_resolver: str) -> RequestSpec:
        """What it asks for."""
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
                message = f"spec.params[{place}]: expected a name that is there once, and a value"
                return RequestSpec(resolver, error=ResolutionError(Reason.INVALID_PARAMETERS, message))
            params[name] = entry["value"]  # of which type is looked at with the reference
        account = params.get(_SERVICE_ACCOUNT)
        user = format_service_account(
            metadata["namespace"], account if isinstance(account, str) and account else "default"
        )
        return RequestSpec(resolver, Reference(resolver, params), user)

    def parse_state(self, obj: Object) -> RequestState:
        """How far it is."""
        return build_request_state(obj, deadline=_get_annotations(obj).get(_DEADLINE), finished=None)

    def build_pending_status(self, obj: Object, resolver: str, deadline: datetime, now: datetime) -> Object:
        """The status of one that has begun.

        The schema of some versions asks for data, source and refSource from the beginning.
        """
        return {
            "conditions": self._build_conditions(obj, "Unknown", IN_PROGRESS, f"resolver {resolver!r} is asked", now),
            "observedGeneration": obj["metadata"].get("generation"),
            "annotations": {_DEADLINE: format_micro_time(deadline)},
            "data": "",
            "source": {},
            "refSource": {},
        }

    def build_success_status(
        self, obj: Object, result: ResolutionResult, started: datetime, now: datetime, *, config_map_name: str = ""
    ) -> Object:
        """The status of one with its result."""
        found = result.resolved
        source: Object = {"uri": found.source.uri, "digest": dict(found.source.digest)}
        if found.source.entry_point:
            source["entryPoint"] = found.source.entry_point
        annotations = {**found.annotations, _DEADLINE: None}
        if result.is_redirected:
            annotations[_POLICY_SOURCE] = result.policy_source
        return {
            "conditions": self._build_conditions(obj, "True", "", "", now),
            "observedGeneration": obj["metadata"].get("generation"),
            "data": base64.b64encode(found.data).decode("ascii"),
            "source": source,
            "refSource": source,
            "annotations": annotations,
        }

    def build_failure_status(
        self, obj: Object, error: ResolutionError, started: datetime | None, now: datetime
    ) -> Object:
        """The status of one without a result."""
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
        """The status of one that has content and does not say so yet."""
        return {"conditions": self._build_conditions(obj, "True", "", "", now), "annotations": {_DEADLINE: None}}

    def _build_conditions(self, obj: Object, status: str, reason: str, message: str, now: datetime) -> list[Any]:
        listed = merge_condition(obj, Condition(SUCCEEDED, status, reason, message[:4096]), now)
        # Of Tekton's conditions, what is not said is left out.
        return [{name: value for name, value in each.items() if value != ""} for each in listed]


def _get_annotations(obj: Object) -> dict[str, Any]:
    found = get_status(obj).get("annotations")
    return found if isinstance(found, dict) else {}
