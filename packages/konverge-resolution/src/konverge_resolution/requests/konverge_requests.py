"""How konverge's own requests are filed, read and written.

Their fields are in `konverge_resolution.requests.api_types`.

A request's name tells whose it is and what it asks for (`konverge_resolution.build_request_name`), so that asking twice
is one request. Its spec never changes.
Whoever has copied the content deletes the request; one that nobody deletes stays
for a while (``finished-ttl``).
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any

from konverge.kube import Condition, Object, build_owner_reference, format_micro_time
from konverge_resolution.engine import ResolutionResult
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Digest, Reference, Value, build_request_name
from konverge_resolution.requests.api_types import CONTENT_KEY, REQUEST
from konverge_resolution.requests.request_format import (
    IN_PROGRESS,
    RESOLVED,
    SUCCEEDED,
    RequestSpec,
    build_request_state,
    format_service_account,
    get_status,
    merge_condition,
)
from konverge_resolution.requests.request_lifecycle import RequestState
from konverge_resolution.resolved_content import MAX_CONTENT_BYTES, Provenance

__all__ = ["KonvergeRequestFormat", "build_request", "parse_provenance", "read_content"]


def build_request(reference: Reference, owner: Object, *, service_account_name: str = "default") -> Object:
    """The request for a reference of an owner, to be created by whoever consumes it; that there is one already is fine.

    Args:
        reference: The reference.
        owner: Whose it is, as the server has it; the request goes with it.
        service_account_name: For whom.
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
    """The content of a resolved request, compared with the digest that was recorded when it was written.

    Args:
        request: The request, as the server has it.
        config_map: The ConfigMap that ``status.dataRef`` names; None when the request has the content itself.

    Raises:
        ResolutionError: ``DigestMismatch``: there is no content, or it is not what was written.
    """
    status = get_status(request)
    encoded: Any = status.get("data")
    if config_map is not None:
        encoded = (config_map.get("binaryData") or {}).get(CONTENT_KEY)
    try:
        data = base64.b64decode(encoded, validate=True)
        digest = Digest.parse(status.get("dataDigest") or "")
    except (TypeError, ValueError, binascii.Error):
        raise ResolutionError(Reason.DIGEST_MISMATCH, "the request has no content that can be checked") from None
    if len(data) > MAX_CONTENT_BYTES or not digest.matches(data):
        raise ResolutionError(Reason.DIGEST_MISMATCH, "the content of the request was changed after it was written")
    return data


def parse_provenance(request: Object) -> Provenance:
    """Where the content of a resolved request came from."""
    found = get_status(request).get("source") or {}
    return Provenance(
        uri=str(found.get("uri") or ""),
        digest={str(name): str(value) for name, value in (found.get("digest") or {}).items()},
        entry_point=str(found.get("entryPoint") or ""),
    )


class KonvergeRequestFormat:
    """How a `ResolutionRequest` is read and written (`konverge_resolution.requests.request_format.Dialect`)."""

    gvk = REQUEST
    separates_content = True

    def parse_spec(self, obj: Object, default_resolver: str) -> RequestSpec:
        """What it asks for."""
        spec = obj.get("spec") or {}
        resolver = spec.get("resolver") or default_resolver
        params: dict[str, Value] = {}
        for where in ("params", "listParams", "mapParams"):
            given = spec.get(where) or {}
            if twice := sorted(set(given) & set(params)):
                message = f"parameter {twice[0][:80]!r}: expected once, found in {where} and before"
                return RequestSpec(resolver, error=ResolutionError(Reason.INVALID_PARAMETERS, message))
            params |= given
        if not resolver:
            message = "spec.resolver: expected the name of a resolver, found none, and default-resolver names none"
            return RequestSpec("", error=ResolutionError(Reason.INVALID_PARAMETERS, message))
        try:
            digest = Digest.parse(spec["digest"]) if spec.get("digest") else None
        except ValueError as error:
            mistake = ResolutionError(Reason.INVALID_PARAMETERS, f"spec.digest: {error}")
            return RequestSpec(resolver, error=mistake)
        user = format_service_account(obj["metadata"]["namespace"], spec.get("serviceAccountName") or "default")
        return RequestSpec(resolver, Reference(resolver, params, digest), user)

    def parse_state(self, obj: Object) -> RequestState:
        """How far it is."""
        status = get_status(obj)
        return build_request_state(obj, deadline=status.get("deadline"), finished=status.get("finishedAt"))

    def build_pending_status(self, obj: Object, resolver: str, deadline: datetime, now: datetime) -> Object:
        """The status of one that has begun."""
        return {
            "conditions": self._build_conditions(obj, "Unknown", IN_PROGRESS, f"resolver {resolver!r} is asked", now),
            "resolver": resolver,
            "deadline": format_micro_time(deadline),
        }

    def build_success_status(
        self, obj: Object, result: ResolutionResult, started: datetime, now: datetime, *, config_map_name: str = ""
    ) -> Object:
        """The status of one with its result."""
        found = result.resolved
        message = f"fetched from {found.source.uri}"
        if result.policy_source:
            how = "redirected to" if result.is_redirected else "which policies name"
            message += f", {how} {result.policy_source}"
        status: Object = {
            "conditions": self._build_conditions(obj, "True", RESOLVED, message, now),
            "dataDigest": str(Digest.of(found.data)),
            "source": {"uri": found.source.uri, "digest": dict(found.source.digest)},
            "resolver": result.resolver,
            "fetchedFrom": result.fetched_from,
            "attempts": result.attempts,
            "startedAt": format_micro_time(started),
            "finishedAt": format_micro_time(now),
        }
        if found.source.entry_point:
            status["source"]["entryPoint"] = found.source.entry_point
        if config_map_name:
            status["dataRef"] = {"name": config_map_name, "key": CONTENT_KEY}
        else:
            status["data"] = base64.b64encode(found.data).decode("ascii")
        further = {
            "annotations": dict(found.annotations),
            "policies": list(result.policies),
            "warnings": list(result.warnings),
            "rewrittenFrom": result.rewritten_from,
            "policySource": result.policy_source,
        }
        return status | {name: value for name, value in further.items() if value}

    def build_failure_status(
        self, obj: Object, error: ResolutionError, started: datetime | None, now: datetime
    ) -> Object:
        """The status of one without a result."""
        status: Object = {
            "conditions": self._build_conditions(obj, "False", error.reason.value, error.message, now),
            "finishedAt": format_micro_time(now),
        }
        return status if started is None else status | {"startedAt": format_micro_time(started)}

    def build_completed_status(self, obj: Object, now: datetime) -> Object:
        """The status of one that has content and does not say so yet."""
        return {
            "conditions": self._build_conditions(obj, "True", RESOLVED, "the content is there", now),
            "finishedAt": format_micro_time(now),
        }

    def _build_conditions(self, obj: Object, status: str, reason: str, message: str, now: datetime) -> list[Any]:
        generation = obj["metadata"].get("generation")
        return merge_condition(obj, Condition(SUCCEEDED, status, reason, message[:4096], generation), now)
