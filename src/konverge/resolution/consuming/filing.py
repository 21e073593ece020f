"""Definitions by request: filed, looked at when it changes, let go when its content was copied."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from konverge.errors import ConflictError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import Object, ObjectKey, find_condition
from konverge.operator.context import OwnerContext
from konverge.resolution.consuming.asked import Underway
from konverge.resolution.consuming.copies import CONFIG_MAP, Fetched
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import FACTS, Reason
from konverge.resolution.reference import Reference
from konverge.resolution.requests.dialect import SUCCEEDED, moment, service_account, status_of
from konverge.resolution.requests.kinds import REQUEST
from konverge.resolution.requests.own import OwnRequests, content_of, request_for, source_of

__all__ = ["Requests"]

_LATE = timedelta(seconds=5)
"""How long after its deadline a request is looked at without waiting for news of it."""
_UNBEGUN = timedelta(seconds=10)
"""When it is told of a request that nobody has begun it. Whoever is there begins one at once."""
_UNSERVED = timedelta(seconds=90)
"""When the server is asked about one that nobody has begun."""
_AGAIN = timedelta(seconds=30)
"""How often it is asked then, and how often for the kind of requests where it knows none."""

_NO_REQUESTS = (
    "the cluster has no ResolutionRequest, by which definitions are asked for: konverge resolvers run --install-crds, "
    "or konverge resolvers package, installs it"
)
_NOBODY = (
    "nobody has begun it yet: is konverge resolvers run, or what konverge resolvers package installs, at work for "
    "namespace {namespace}?"
)


class Requests:
    """Asks by request. It holds nothing: what is asked for is in the cluster.

    Args:
        service_account_name: For whom, of the owner's namespace.
        retry: When to ask again after a failure that may pass.
    """

    def __init__(self, service_account_name: str, retry: timedelta) -> None:
        self._service_account_name = service_account_name
        self._retry = retry

    async def fetch(self, reference: Reference, ctx: OwnerContext) -> Fetched | Underway:
        """What came of a reference, as far as it has; its end wakes the owner.

        Raises:
            ResolutionError: It cannot be had.
        """
        try:
            return await self._fetched(reference, ctx)
        except KindUnreachableError:
            raise  # nobody can tell whether it is there
        except KindNotServedError:
            # Nothing tells of a kind that comes.
            ctx.request_wake(ctx.clock.now() + _AGAIN)
            raise ResolutionError(Reason.RESOLVER_NOT_AVAILABLE, _NO_REQUESTS) from None

    async def _fetched(self, reference: Reference, ctx: OwnerContext) -> Fetched | Underway:
        wanted = request_for(reference, ctx.owner, service_account_name=self._service_account_name)
        key = ObjectKey.of(wanted)
        try:
            request = await ctx.cluster.get(REQUEST, key)
        except NotFoundError:
            return await self._filed(wanted, ctx)
        if _is_open(request) and ctx.clock.now() >= _look_at(request):
            # News of its end can be lost; who only waits for it waits for ever.
            try:
                request = await ctx.cluster.get(REQUEST, key, live=True)
            except NotFoundError:
                return await self._filed(wanted, ctx)
        self._check(request, reference, ctx)
        if _is_open(request):
            return _underway(request, ctx)
        condition = find_condition(request, SUCCEEDED)
        assert condition is not None, "what is not open has ended"
        if condition.status == "True":
            return await self._content(reference, key, ctx)
        await self._again(request, condition.reason, ctx)
        raise ResolutionError(_reason(condition.reason), condition.message)

    async def let_go(self, reference: Reference, ctx: OwnerContext) -> None:
        """Remove the request of a reference: its content was copied."""
        with suppress(NotFoundError, ConflictError):  # gone already
            request = await ctx.cluster.get(REQUEST, ObjectKey.of(request_for(reference, ctx.owner)))
            await ctx.cluster.delete(REQUEST, ObjectKey.of(request), uid=request["metadata"]["uid"])

    def _check(self, request: Object, reference: Reference, ctx: OwnerContext) -> None:
        """Refuse what is called as the request for this reference is, and is not: names can be known in advance.

        Raises:
            ResolutionError: ``Denied``.
        """
        found = OwnRequests().asked(request, reference.resolver)
        wanted = service_account(ctx.owner["metadata"]["namespace"], self._service_account_name)
        owners = [each.get("uid") for each in request["metadata"].get("ownerReferences") or []]
        if (found.reference, found.user, owners) != (reference, wanted, [ctx.owner["metadata"]["uid"]]):
            told = f"ResolutionRequest {request['metadata']['name']} asks for something else than what is called so"
            raise ResolutionError(Reason.DENIED, f"{told}, or for somebody else; delete it, and it is filed anew")

    async def _filed(self, wanted: Object, ctx: OwnerContext) -> Underway:
        try:
            filed = await ctx.cluster.create(wanted)
        except ConflictError:
            return Underway()  # by an earlier pass, of which the caches have not heard
        return _underway(filed, ctx)

    async def _content(self, reference: Reference, key: ObjectKey, ctx: OwnerContext) -> Fetched | Underway:
        try:
            # What is held in memory has no content.
            request = await ctx.cluster.live.get(REQUEST, key)
        except NotFoundError:
            ctx.request_wake(ctx.clock.now())
            return Underway()
        config_map = None
        if found := status_of(request).get("dataRef"):
            name = str(found.get("name") or "")
            try:
                config_map = await ctx.cluster.live.get(CONFIG_MAP, ObjectKey(key.namespace, name))
            except NotFoundError:
                # Somebody has deleted it. Looked for again and again, it would not come back.
                await self._again(request, Reason.UNREACHABLE, ctx)
                told = f"ConfigMap {name[:253]}, which has the content of the request, is gone"
                raise ResolutionError(Reason.UNREACHABLE, f"{told}; it is asked for again") from None
        data = content_of(request, config_map)
        if reference.digest is not None and not reference.digest.fits(data):
            raise ResolutionError(Reason.DIGEST_MISMATCH, reference.digest.mismatch(data))
        return Fetched(data, source_of(request), str(status_of(request).get("resolver") or reference.resolver))

    async def _again(self, request: Object, reason: str, ctx: OwnerContext) -> None:
        """Have a failure that may pass asked for anew, some time after it ended."""
        if not FACTS[_reason(reason)].may_pass:
            return
        ended = moment(status_of(request).get("finishedAt")) or ctx.clock.now()
        if ctx.clock.now() < ended + self._retry:
            ctx.request_wake(ended + self._retry)
            return
        with suppress(NotFoundError, ConflictError):  # somebody else was faster
            await ctx.cluster.delete(REQUEST, ObjectKey.of(request), uid=request["metadata"]["uid"])
        ctx.request_wake(ctx.clock.now())


def _is_open(request: Object) -> bool:
    condition = find_condition(request, SUCCEEDED)
    return condition is None or condition.status not in ("True", "False")


def _underway(request: Object, ctx: OwnerContext) -> Underway:
    """Wait for the end of a request, and tell of one that nobody has begun."""
    now = ctx.clock.now()
    due = _look_at(request)
    doubtful = _created(request) + _UNBEGUN
    is_begun = find_condition(request, SUCCEEDED) is not None
    if not is_begun and now < doubtful:
        due = doubtful
    ctx.request_wake(due if due > now else now + _AGAIN)
    if is_begun or now < doubtful:
        return Underway()
    return Underway(_NOBODY.format(namespace=request["metadata"]["namespace"]))


def _look_at(request: Object) -> datetime:
    deadline = moment(status_of(request).get("deadline"))
    return _created(request) + _UNSERVED if deadline is None else deadline + _LATE


def _created(request: Object) -> datetime:
    created = moment(request["metadata"].get("creationTimestamp"))
    assert created is not None, "a server stamps what it creates"
    return created


def _reason(text: str) -> Reason:
    """The reason of a condition; one that this version does not know is nobody's fault here."""
    try:
        return Reason(text)
    except ValueError:
        return Reason.INTERNAL
