"""Definitions by request: filed, looked at when it changes, let go when its content was copied."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from konverge.errors import ConflictError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import Object, ObjectKey, find_condition
from konverge.operator.owner_context import OwnerContext
from konverge_resolution.consumer.remote_definition import CONFIG_MAP
from konverge_resolution.consumer.requested_definition import PendingFetch
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import REASON_TRAITS, Reason
from konverge_resolution.reference import Reference
from konverge_resolution.requests.api_types import REQUEST
from konverge_resolution.requests.konverge_requests import (
    KonvergeRequestFormat,
    build_request,
    parse_provenance,
    read_content,
)
from konverge_resolution.requests.request_format import SUCCEEDED, format_service_account, get_status, parse_api_time
from konverge_resolution.resolved_content import ResolvedContent

__all__ = ["RequestSource"]

_DEADLINE_GRACE = timedelta(seconds=5)
"""How long after its deadline a request is looked at without waiting for news of it."""
_START_TIMEOUT = timedelta(seconds=10)
"""When it is told of a request that nobody has begun it. Whoever is there begins one at once."""
_DEFAULT_TIMEOUT = timedelta(seconds=90)
"""When the server is asked about one that nobody has begun."""
_RETRY_INTERVAL = timedelta(seconds=30)
"""How often it is asked then, and how often for the kind of requests where it knows none."""

_NO_REQUESTS = (
    "the cluster has no ResolutionRequest, by which definitions are asked for: konverge resolvers run --install-crds, "
    "or konverge resolvers package, installs it"
)
_NOT_STARTED = (
    "nobody has begun it yet: is konverge resolvers run, or what konverge resolvers package installs, at work for "
    "namespace {namespace}?"
)


class RequestSource:
    """Asks by request. It holds nothing: what is asked for is in the cluster.

    Args:
        service_account_name: For whom, of the owner's namespace.
        retry: When to ask again after a failure that may pass.
    """

    def __init__(self, service_account_name: str, retry: timedelta) -> None:
        self._service_account_name = service_account_name
        self._retry = retry

    async def fetch(self, reference: Reference, ctx: OwnerContext) -> ResolvedContent | PendingFetch:
        """What came of a reference, as far as it has; its end wakes the owner.

        Raises:
            ResolutionError: It cannot be had.
        """
        try:
            return await self._read_request(reference, ctx)
        except KindUnreachableError:
            raise  # nobody can tell whether it is there
        except KindNotServedError:
            # Nothing tells of a kind that comes.
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
            # News of its end can be lost; who only waits for it waits for ever.
            try:
                request = await ctx.cluster.get(REQUEST, key, live=True)
            except NotFoundError:
                return await self._create_request(wanted, ctx)
        self._check(request, reference, ctx)
        if _is_open(request):
            return _build_pending(request, ctx)
        condition = find_condition(request, SUCCEEDED)
        assert condition is not None, "what is not open has ended"
        if condition.status == "True":
            return await self._read_content(reference, key, ctx)
        await self._schedule_retry(request, condition.reason, ctx)
        raise ResolutionError(_parse_reason(condition.reason), condition.message)

    async def release(self, reference: Reference, ctx: OwnerContext) -> None:
        """Remove the request of a reference: its content was copied."""
        with suppress(NotFoundError, ConflictError):  # gone already
            request = await ctx.cluster.get(REQUEST, ObjectKey.of(build_request(reference, ctx.owner)))
            await ctx.cluster.delete(REQUEST, ObjectKey.of(request), uid=request["metadata"]["uid"])

    def _check(self, request: Object, reference: Reference, ctx: OwnerContext) -> None:
        """Refuse what is called as the request for this reference is, and is not: names can be known in advance.

        Raises:
            ResolutionError: ``Denied``.
        """
        found = KonvergeRequestFormat().parse_spec(request, reference.resolver)
        wanted = format_service_account(ctx.owner["metadata"]["namespace"], self._service_account_name)
        owners = [each.get("uid") for each in request["metadata"].get("ownerReferences") or []]
        if (found.reference, found.user, owners) != (reference, wanted, [ctx.owner["metadata"]["uid"]]):
            message = f"ResolutionRequest {request['metadata']['name']} asks for something else than what is called so"
            raise ResolutionError(Reason.DENIED, f"{message}, or for somebody else; delete it, and it is filed anew")

    async def _create_request(self, wanted: Object, ctx: OwnerContext) -> PendingFetch:
        try:
            filed = await ctx.cluster.create(wanted)
        except ConflictError:
            return PendingFetch()  # by an earlier pass, of which the caches have not heard
        return _build_pending(filed, ctx)

    async def _read_content(
        self, reference: Reference, key: ObjectKey, ctx: OwnerContext
    ) -> ResolvedContent | PendingFetch:
        try:
            # What is held in memory has no content.
            request = await ctx.cluster.live.get(REQUEST, key)
        except NotFoundError:
            ctx.request_requeue(ctx.clock.now())
            return PendingFetch()
        config_map = None
        if found := get_status(request).get("dataRef"):
            name = str(found.get("name") or "")
            try:
                config_map = await ctx.cluster.live.get(CONFIG_MAP, ObjectKey(key.namespace, name))
            except NotFoundError:
                # Somebody has deleted it. Looked for again and again, it would not come back.
                await self._schedule_retry(request, Reason.UNREACHABLE, ctx)
                message = f"ConfigMap {name[:253]}, which has the content of the request, is gone"
                raise ResolutionError(Reason.UNREACHABLE, f"{message}; it is asked for again") from None
        data = read_content(request, config_map)
        if reference.digest is not None and not reference.digest.matches(data):
            raise ResolutionError(Reason.DIGEST_MISMATCH, reference.digest.describe_mismatch(data))
        return ResolvedContent(data, parse_provenance(request))

    async def _schedule_retry(self, request: Object, reason: str, ctx: OwnerContext) -> None:
        """Have a failure that may pass asked for anew, some time after it ended."""
        if not REASON_TRAITS[_parse_reason(reason)].is_transient:
            return
        ended = parse_api_time(get_status(request).get("finishedAt")) or ctx.clock.now()
        if ctx.clock.now() < ended + self._retry:
            ctx.request_requeue(ended + self._retry)
            return
        with suppress(NotFoundError, ConflictError):  # somebody else was faster
            await ctx.cluster.delete(REQUEST, ObjectKey.of(request), uid=request["metadata"]["uid"])
        ctx.request_requeue(ctx.clock.now())


def _is_open(request: Object) -> bool:
    condition = find_condition(request, SUCCEEDED)
    return condition is None or condition.status not in ("True", "False")


def _build_pending(request: Object, ctx: OwnerContext) -> PendingFetch:
    """Wait for the end of a request, and tell of one that nobody has begun."""
    now = ctx.clock.now()
    due = _compute_due(request)
    doubtful = _parse_creation_time(request) + _START_TIMEOUT
    is_begun = find_condition(request, SUCCEEDED) is not None
    if not is_begun and now < doubtful:
        due = doubtful
    ctx.request_requeue(due if due > now else now + _RETRY_INTERVAL)
    if is_begun or now < doubtful:
        return PendingFetch()
    return PendingFetch(_NOT_STARTED.format(namespace=request["metadata"]["namespace"]))


def _compute_due(request: Object) -> datetime:
    deadline = parse_api_time(get_status(request).get("deadline"))
    return _parse_creation_time(request) + _DEFAULT_TIMEOUT if deadline is None else deadline + _DEADLINE_GRACE


def _parse_creation_time(request: Object) -> datetime:
    created = parse_api_time(request["metadata"].get("creationTimestamp"))
    assert created is not None, "a server stamps what it creates"
    return created


def _parse_reason(text: str) -> Reason:
    """The reason of a condition; one that this version does not know is nobody's fault here."""
    try:
        return Reason(text)
    except ValueError:
        return Reason.INTERNAL
