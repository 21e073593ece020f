"""Source of definitions through requests: create, read and delete them."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from konverge._internal.kube import Object, ObjectKey, find_condition
from konverge._internal.operator.owner_context import OwnerContext
from konverge.errors import ConflictError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge_resolution._internal.consumer.remote_definition import CONFIG_MAP
from konverge_resolution._internal.consumer.requested_definition import PendingFetch
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import REASON_TRAITS, Reason
from konverge_resolution._internal.reference import Reference
from konverge_resolution._internal.requests.api_types import REQUEST
from konverge_resolution._internal.requests.konverge_requests import (
    KonvergeRequestFormat,
    build_request,
    parse_provenance,
    read_content,
)
from konverge_resolution._internal.requests.request_format import (
    SUCCEEDED,
    format_service_account,
    get_status,
    parse_api_time,
)
from konverge_resolution._internal.resolved_content import ResolvedContent

__all__ = ["RequestSource"]

_DEADLINE_GRACE = timedelta(seconds=5)
"""Time after its deadline when an unfinished request is read again without an event."""
_START_TIMEOUT = timedelta(seconds=10)
"""Time without a start after which a request is reported as stalled. Active operators start it at once."""
_DEFAULT_TIMEOUT = timedelta(seconds=90)
"""Time without a start after which the API server is read."""
_RETRY_INTERVAL = timedelta(seconds=30)
"""Interval of further reads, and of reads while the kind of requests does not exist."""

_NO_REQUESTS = (
    "the cluster does not serve ResolutionRequest; install it with konverge resolvers run --install-crds "
    "or konverge resolvers package"
)
_NOT_STARTED = (
    "no operator has started the request; check that konverge resolvers run, or its Deployment, serves "
    "namespace {namespace}"
)


class RequestSource:
    """Source with requests. It has no state: all of it is in the cluster.

    Args:
        service_account_name: The ServiceAccount of the owner's namespace.
        retry: The interval of retries after transient failures.
    """

    def __init__(self, service_account_name: str, retry: timedelta) -> None:
        self._service_account_name = service_account_name
        self._retry = retry

    async def fetch(self, reference: Reference, ctx: OwnerContext) -> ResolvedContent | PendingFetch:
        """Return the content of a reference, or the state of its request; its end requeues the owner.

        Raises:
            ResolutionError: It cannot be resolved.
        """
        try:
            return await self._read_request(reference, ctx)
        except KindUnreachableError:
            raise  # unknown whether the kind exists
        except KindNotServedError:
            # No event reports a new kind.
            ctx.request_requeue(ctx.clock.now() + _RETRY_INTERVAL)
            raise ResolutionError(Reason.RESOLVER_NOT_AVAILABLE, _NO_REQUESTS) from None

    async def _read_request(self, reference: Reference, ctx: OwnerContext) -> ResolvedContent | PendingFetch:
        wanted = build_request(reference, ctx.owner, service_account_name=self._service_account_name)
        key = ObjectKey.of(wanted)
        try:
            request = await ctx.cluster.get(REQUEST, key)
        except NotFoundError:
            return await self._create_request(wanted, ctx)
        if _is_open(request) and ctx.clock.now() >= _compute_due(request):
            # The event of its end can be lost, so waiting alone could last forever.
            try:
                request = await ctx.cluster.get(REQUEST, key, live=True)
            except NotFoundError:
                return await self._create_request(wanted, ctx)
        self._check(request, reference, ctx)
        if _is_open(request):
            return _build_pending(request, ctx)
        condition = find_condition(request, SUCCEEDED)
        assert condition is not None, "a finished request has a condition"
        if condition.status == "True":
            return await self._read_content(reference, key, ctx)
        await self._schedule_retry(request, condition.reason, ctx)
        raise ResolutionError(_parse_reason(condition.reason), condition.message)

    async def release(self, reference: Reference, ctx: OwnerContext) -> None:
        """Delete the request of a reference after its content was copied."""
        with suppress(NotFoundError, ConflictError):  # already deleted
            request = await ctx.cluster.get(REQUEST, ObjectKey.of(build_request(reference, ctx.owner)))
            await ctx.cluster.delete(REQUEST, ObjectKey.of(request), uid=request["metadata"]["uid"])

    def _check(self, request: Object, reference: Reference, ctx: OwnerContext) -> None:
        """Refuse an object with the request's name but another content, because request names are predictable.

        Raises:
            ResolutionError: ``Denied``: the object is another request.
        """
        spec = KonvergeRequestFormat().parse_spec(request, reference.resolver)
        user = format_service_account(ctx.owner["metadata"]["namespace"], self._service_account_name)
        owners = [owner.get("uid") for owner in request["metadata"].get("ownerReferences") or []]
        if (spec.reference, spec.user, owners) != (reference, user, [ctx.owner["metadata"]["uid"]]):
            message = (
                f"ResolutionRequest {request['metadata']['name']}: expected this owner's request, found another one"
            )
            raise ResolutionError(Reason.DENIED, f"{message}; delete it to create the request again")

    async def _create_request(self, wanted: Object, ctx: OwnerContext) -> PendingFetch:
        try:
            created = await ctx.cluster.create(wanted)
        except ConflictError:
            return PendingFetch()  # an earlier reconcile created it, but the cache does not show it yet
        return _build_pending(created, ctx)

    async def _read_content(
        self, reference: Reference, key: ObjectKey, ctx: OwnerContext
    ) -> ResolvedContent | PendingFetch:
        try:
            # The cache does not store content.
            request = await ctx.cluster.live.get(REQUEST, key)
        except NotFoundError:
            ctx.request_requeue(ctx.clock.now())
            return PendingFetch()
        config_map = None
        if data_reference := get_status(request).get("dataRef"):
            name = str(data_reference.get("name") or "")
            try:
                config_map = await ctx.cluster.live.get(CONFIG_MAP, ObjectKey(key.namespace, name))
            except NotFoundError:
                # It was deleted and does not come back, so polling would be useless.
                await self._schedule_retry(request, Reason.UNREACHABLE, ctx)
                message = f"ConfigMap {name[:253]}: the content of the request was deleted"
                raise ResolutionError(Reason.UNREACHABLE, f"{message}; it will be requested again") from None
        data = read_content(request, config_map)
        if reference.digest is not None and not reference.digest.matches(data):
            raise ResolutionError(Reason.DIGEST_MISMATCH, reference.digest.describe_mismatch(data))
        return ResolvedContent(data, parse_provenance(request))

    async def _schedule_retry(self, request: Object, reason: str, ctx: OwnerContext) -> None:
        """Schedule a new request after a transient failure."""
        if not REASON_TRAITS[_parse_reason(reason)].is_transient:
            return
        ended = parse_api_time(get_status(request).get("finishedAt")) or ctx.clock.now()
        if ctx.clock.now() < ended + self._retry:
            ctx.request_requeue(ended + self._retry)
            return
        with suppress(NotFoundError, ConflictError):  # already deleted
            await ctx.cluster.delete(REQUEST, ObjectKey.of(request), uid=request["metadata"]["uid"])
        ctx.request_requeue(ctx.clock.now())


def _is_open(request: Object) -> bool:
    condition = find_condition(request, SUCCEEDED)
    return condition is None or condition.status not in ("True", "False")


def _build_pending(request: Object, ctx: OwnerContext) -> PendingFetch:
    """Schedule the next read of an unfinished request; report a request that no operator has started."""
    now = ctx.clock.now()
    due = _compute_due(request)
    stalls_at = _parse_creation_time(request) + _START_TIMEOUT
    is_begun = find_condition(request, SUCCEEDED) is not None
    if not is_begun and now < stalls_at:
        due = stalls_at
    ctx.request_requeue(due if due > now else now + _RETRY_INTERVAL)
    if is_begun or now < stalls_at:
        return PendingFetch()
    return PendingFetch(_NOT_STARTED.format(namespace=request["metadata"]["namespace"]))


def _compute_due(request: Object) -> datetime:
    deadline = parse_api_time(get_status(request).get("deadline"))
    return _parse_creation_time(request) + _DEFAULT_TIMEOUT if deadline is None else deadline + _DEADLINE_GRACE


def _parse_creation_time(request: Object) -> datetime:
    created = parse_api_time(request["metadata"].get("creationTimestamp"))
    assert created is not None, "the API server sets the creation time"
    return created


def _parse_reason(text: str) -> Reason:
    """Parse the reason of a condition; an unknown one of another version becomes ``Internal``."""
    try:
        return Reason(text)
    except ValueError:
        return Reason.INTERNAL
