"""Creation, parsing and status of konverge's own requests.

Their fields are in `requests.api_types`.

The name of a request contains its owner and its reference (`konverge_resolution.build_request_name`), so two equal
requests are one object. Its spec never changes. The consumer deletes the request after it has copied the content; the
operator removes other finished requests after a while (``finished-ttl``).
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any

from konverge._internal.kube import Condition, Object, build_owner_reference, format_micro_time
from konverge_resolution._internal.engine import ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Reference, Value, build_request_name
from konverge_resolution._internal.requests.api_types import CONTENT_KEY, REQUEST
from konverge_resolution._internal.requests.request_format import (
    IN_PROGRESS,
    RESOLVED,
    SUCCEEDED,
    RequestSpec,
    build_request_state,
    format_service_account,
    get_status,
    merge_condition,
)
from konverge_resolution._internal.requests.request_lifecycle import RequestState
from konverge_resolution._internal.resolved_content import MAX_CONTENT_BYTES, Provenance

__all__ = ["KonvergeRequestFormat", "build_request", "parse_provenance", "read_content"]


def build_request(reference: Reference, owner: Object, *, service_account_name: str = "default") -> Object:
    """Return the request of an owner for a reference. The consumer creates it, unless it exists.

    Args:
        reference: The reference.
        owner: The owner from the API server; the request is deleted with it.
        service_account_name: The ServiceAccount of the requester.
    """
    namespace = str(owner["metadata"]["namespace"])
    spec: Object = {"resolver": reference.resolver, "params": {}, "listParams": {}, "mapParams": {}}
    for name, value in reference.params.items():
        where = "params" if isinstance(value, str) else "listParams" if isinstance(value, list) else "mapParams"
        spec[where][name] = value
    spec = {name: value for name, value in spec.items() if value}
    if reference.digest is not None:
        spec["digest"] = str(reference.digest)
    if service_account_name != "default":
        spec["serviceAccountName"] = service_account_name
    return {
        "apiVersion": REQUEST.api_version,
        "kind": REQUEST.kind,
        "metadata": {
            "name": build_request_name(reference, namespace=namespace, owner_uid=str(owner["metadata"]["uid"])),
            "namespace": namespace,
            "ownerReferences": [build_owner_reference(owner)],
        },
        "spec": spec,
    }


def read_content(request: Object, config_map: Object | None = None) -> bytes:
    """Return the content of a resolved request after a comparison with the recorded digest.

    Args:
        request: The request from the API server.
        config_map: The ConfigMap that ``status.dataRef`` names; None when the request has the content itself.

    Raises:
        ResolutionError: ``DigestMismatch``: there is no content, or it has another digest.
    """
    status = get_status(request)
    encoded: Any = status.get("data")
    if config_map is not None:
        encoded = (config_map.get("binaryData") or {}).get(CONTENT_KEY)
    try:
        data = base64.b64decode(encoded, validate=True)
        digest = Digest.parse(status.get("dataDigest") or "")
    except (TypeError, ValueError, binascii.Error):
        raise ResolutionError(Reason.DIGEST_MISMATCH, "the request has no content with a valid digest") from None
    if len(data) > MAX_CONTENT_BYTES or not digest.matches(data):
        raise ResolutionError(
            Reason.DIGEST_MISMATCH, "the content of the request was changed; delete the request to fetch it again"
        )
    return data


def parse_provenance(request: Object) -> Provenance:
    """Return the source of the content of a resolved request."""
    source = get_status(request).get("source") or {}
    return Provenance(
        uri=str(source.get("uri") or ""),
        digest={str(name): str(value) for name, value in (source.get("digest") or {}).items()},
        entry_point=str(source.get("entryPoint") or ""),
    )


class KonvergeRequestFormat:
    """Format of a `ResolutionRequest` (`requests.request_format.RequestFormat`)."""

    gvk = REQUEST
    separates_content = True

    def parse_spec(self, obj: Object, default_resolver: str) -> RequestSpec:
        """Parse the resolver and the reference of the request."""
        spec = obj.get("spec") or {}
        resolver = spec.get("resolver") or default_resolver
        params: dict[str, Value] = {}
        for where in ("params", "listParams", "mapParams"):
            given = spec.get(where) or {}
            if twice := sorted(set(given) & set(params)):
                message = f"parameter {twice[0][:80]!r}: expected once, found again in {where}"
                return RequestSpec(resolver, error=ResolutionError(Reason.INVALID_PARAMETERS, message))
            params |= given
        if not resolver:
            message = "spec.resolver: expected the name of a resolver, found none; set it, or set default-resolver"
            return RequestSpec("", error=ResolutionError(Reason.INVALID_PARAMETERS, message))
        try:
            digest = Digest.parse(spec["digest"]) if spec.get("digest") else None
        except ValueError as error:
            invalid_digest = ResolutionError(Reason.INVALID_PARAMETERS, f"spec.digest: {error}")
            return RequestSpec(resolver, error=invalid_digest)
        user = format_service_account(obj["metadata"]["namespace"], spec.get("serviceAccountName") or "default")
        return RequestSpec(resolver, Reference(resolver, params, digest), user)

    def parse_state(self, obj: Object) -> RequestState:
        """Return the state of the request."""
        status = get_status(obj)
        return build_request_state(obj, deadline=status.get("deadline"), finished=status.get("finishedAt"))

    def build_pending_status(self, obj: Object, resolver: str, deadline: datetime, now: datetime) -> Object:
        """Build the status of a request that has started."""
        return {
            "conditions": self._build_conditions(
                obj, "Unknown", IN_PROGRESS, f"resolver {resolver!r} fetches the definition", now
            ),
            "resolver": resolver,
            "deadline": format_micro_time(deadline),
        }

    def build_success_status(
        self, obj: Object, result: ResolutionResult, started: datetime, now: datetime, *, config_map_name: str = ""
    ) -> Object:
        """Build the status of a request with its result."""
        content = result.resolved
        message = f"fetched from {content.source.uri}"
        if result.policy_source:
            how = "redirected to" if result.is_redirected else "named by policies as"
            message += f", {how} {result.policy_source}"
        status: Object = {
            "conditions": self._build_conditions(obj, "True", RESOLVED, message, now),
            "dataDigest": str(Digest.of(content.data)),
            "source": {"uri": content.source.uri, "digest": dict(content.source.digest)},
            "resolver": result.resolver,
            "fetchedFrom": result.fetched_from,
            "attempts": result.attempts,
            "startedAt": format_micro_time(started),
            "finishedAt": format_micro_time(now),
        }
        if content.source.entry_point:
            status["source"]["entryPoint"] = content.source.entry_point
        if config_map_name:
            status["dataRef"] = {"name": config_map_name, "key": CONTENT_KEY}
        else:
            status["data"] = base64.b64encode(content.data).decode("ascii")
        further = {
            "annotations": dict(content.annotations),
            "policies": list(result.policies),
            "warnings": list(result.warnings),
            "rewrittenFrom": result.rewritten_from,
            "policySource": result.policy_source,
        }
        return status | {name: value for name, value in further.items() if value}

    def build_failure_status(
        self, obj: Object, error: ResolutionError, started: datetime | None, now: datetime
    ) -> Object:
        """Build the status of a failed request."""
        status: Object = {
            "conditions": self._build_conditions(obj, "False", error.reason.value, error.message, now),
            "finishedAt": format_micro_time(now),
        }
        return status if started is None else status | {"startedAt": format_micro_time(started)}

    def build_completed_status(self, obj: Object, now: datetime) -> Object:
        """Build the status of a request that has content but no condition for it yet."""
        return {
            "conditions": self._build_conditions(obj, "True", RESOLVED, "the content is available", now),
            "finishedAt": format_micro_time(now),
        }

    def _build_conditions(self, obj: Object, status: str, reason: str, message: str, now: datetime) -> list[Any]:
        generation = obj["metadata"].get("generation")
        return merge_condition(obj, Condition(SUCCEEDED, status, reason, message[:4096], generation), now)
