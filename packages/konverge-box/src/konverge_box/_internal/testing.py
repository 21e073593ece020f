"""Conformance tests for providers of the operator box.

Describe one item of a kind in a `ProviderSubject`, then run each of `PROVIDER_CASES` on a fresh one::

    @pytest.mark.parametrize("case", PROVIDER_CASES, ids=lambda case: case.__name__)
    async def test_provider_conforms(case):
        await case(ProviderSubject(provider=Notes(), kind="Note", …))

An `AssertionError` names the broken rule. The cases call the real service, or its replacement in tests.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge.clock import SystemClock
from konverge_box._internal.expressions import reveal_sensitive
from konverge_box._internal.providers import (
    ForeignError,
    ItemOwner,
    ItemRequest,
    ItemResult,
    OnDelete,
    Provider,
    ReconcileRequest,
)
from konverge_box._internal.providers.call_runner import CallRunner
from konverge_box._internal.providers.item_outcomes import check_deletion, check_result, find_secrets, redact_secrets
from konverge_box._internal.providers.spec_conversion import extract_identity

__all__ = ["PROVIDER_CASES", "ProviderCase", "ProviderSubject"]

_OWNER_KIND = GroupVersionKind("conformance.konverge.dev", "v1", "Owner")
_KEY = ObjectKey("default", "conformance")
_MAX_TURNS = 200
_SECONDS = 30.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class ProviderSubject:
    """One item of one kind that does not exist yet.

    Args:
        provider: The provider under test.
        kind: One of its kinds.
        name: The name of the item outside of the cluster.
        settings: An instance of the provider's settings class.
        spec: An instance of the kind's spec class.
        changed: Another spec of the same item, whose difference is visible to `look`.
        look: Returns the state of the item as comparable JSON; None if it does not exist.
        make_foreign: Creates an item of that name without an owner; None if the kind has no marks.
        unreachable: Settings of a service that accepts connections and never responds; None without one.
    """

    provider: Provider
    kind: str
    name: str
    settings: Struct
    spec: Struct
    changed: Struct
    look: Callable[[], Awaitable[Any]]
    make_foreign: Callable[[], Awaitable[None]] | None = None
    unreachable: Struct | None = None

    async def reconcile(
        self, spec: Struct | None = None, *, uid: str = "uid-1", settings: Struct | None = None
    ) -> ItemResult:
        """Reconcile the item like a process without memory of earlier calls."""
        request = ReconcileRequest(
            **self._build_arguments(uid, "delete", settings), spec=spec if spec is not None else self.spec
        )
        return check_result(await self.provider.reconcile(request))

    async def delete(
        self, on_delete: OnDelete = "delete", *, uid: str = "uid-1", settings: Struct | None = None
    ) -> None:
        """Delete or release the item with the provider, and wait up to 30 seconds until its service has done it."""
        request = ItemRequest(**self._build_arguments(uid, on_delete, settings))
        clock = SystemClock()
        end = clock.monotonic() + _SECONDS
        while (pending := check_deletion(await self.provider.delete(request))) is not None:
            assert clock.monotonic() < end, f"the item is still being deleted after {_SECONDS:g} s: {pending.message}"
            await clock.sleep(_POLL_SECONDS)

    def _build_arguments(self, uid: str, on_delete: OnDelete, settings: Struct | None) -> dict[str, Any]:
        kind = self.provider.kinds[self.kind]
        identity = extract_identity(self.spec, kind.identity, self.kind)
        token = msgspec.json.encode([uid, self.kind, self.name, identity])
        return {
            "kind": self.kind,
            "name": self.name if kind.is_named else "",
            "owner": ItemOwner(_OWNER_KIND, _KEY, uid),
            "settings": settings if settings is not None else self.settings,
            "identity": identity,
            "on_delete": on_delete,
            "handle": "",
            "token": hashlib.sha256(token).hexdigest()[:32],
        }


ProviderCase: TypeAlias = Callable[[ProviderSubject], Coroutine[Any, Any, None]]
"""The check of one rule."""


async def keeps_unchanged_items(subject: ProviderSubject) -> None:
    """Check that an item with the desired state is not changed, and that the outputs stay the same."""
    assert await subject.look() is None, "the item exists before the case has started"
    first = await subject.reconcile()
    seen = await subject.look()
    assert seen is not None, "the item does not exist after reconcile"
    second = await subject.reconcile()
    assert await subject.look() == seen, "the second reconcile changed the item"
    assert reveal_sensitive(second.outputs) == reveal_sensitive(first.outputs), (
        "the outputs differ although nothing has changed"
    )


async def corrects_differences(subject: ProviderSubject) -> None:
    """Check that a changed spec, or a change by another client, is corrected."""
    await subject.reconcile()
    seen = await subject.look()
    await subject.reconcile(subject.changed)
    changed = await subject.look()
    assert changed != seen, "the changed spec has no effect"
    await subject.reconcile()
    assert await subject.look() == seen, "the first spec is not restored"


async def deletes_idempotently(subject: ProviderSubject) -> None:
    """Check that delete is idempotent, also for an item that never existed."""
    await subject.delete()
    await subject.reconcile()
    await subject.delete()
    assert await subject.look() is None, "the item exists after delete"
    await subject.delete()
    await subject.reconcile()
    assert await subject.look() is not None, "the item cannot be created again after delete"


async def keeps_unmarked_items(subject: ProviderSubject) -> None:
    """Check that an item without a mark is neither taken over nor deleted."""
    if subject.make_foreign is None:
        return
    await subject.make_foreign()
    seen = await subject.look()
    await _expect_refusal(subject, "uid-1")
    await subject.delete()
    await subject.delete("retain")
    assert await subject.look() == seen, "an item without a mark was changed"


async def keeps_items_of_other_owners(subject: ProviderSubject) -> None:
    """Check that an item of another owner is neither taken over nor deleted."""
    if subject.make_foreign is None:
        return
    await subject.reconcile()
    seen = await subject.look()
    await _expect_refusal(subject, "uid-2")
    await subject.delete(uid="uid-2")
    await subject.delete("retain", uid="uid-2")
    assert await subject.look() == seen, "an item of another owner was changed"


async def releases_retained_items(subject: ProviderSubject) -> None:
    """Check that a retained item stays, and that the next owner of the same kind, namespace and name gets it."""
    await subject.reconcile()
    await subject.delete("retain")
    await subject.delete("retain")
    assert await subject.look() is not None, "the item was deleted instead of retained"
    if subject.make_foreign is not None:
        await subject.reconcile(uid="uid-2")
        await _expect_refusal(subject, "uid-1")


async def resumes_after_any_cancellation(subject: ProviderSubject) -> None:
    """Check that the next call finishes the work of a call that was cancelled at any time, without duplicates."""
    await subject.reconcile()
    wanted = await subject.look()
    await subject.delete()
    turns = 0
    while turns < _MAX_TURNS:
        has_ended = await _cancel_after(subject.reconcile(), turns)
        await subject.reconcile()
        assert await subject.look() == wanted, f"after a cancellation at {turns} turns of the loop, the state differs"
        await _cancel_after(subject.delete(), turns)
        await subject.delete()
        assert await subject.look() is None, (
            f"a delete that was cancelled after {turns} turns of the loop cannot be finished"
        )
        if has_ended:
            return
        turns = turns * 2 + 1


async def stops_when_cancelled(subject: ProviderSubject) -> None:
    """Check that a call to a service that never responds ends after its cancellation."""
    if subject.unreachable is None:
        return
    for call in (
        lambda: subject.reconcile(settings=subject.unreachable),
        lambda: subject.delete(settings=subject.unreachable),
    ):
        attempts = CallRunner(1)
        try:
            await attempts.run_call("uid-1", call, 0.3)
        except Exception:  # noqa: BLE001  # any error of a service that does not respond is accepted
            assert not attempts.list_stuck_owners(), "the call continues after its cancellation"
        else:
            raise AssertionError("the call succeeded although the service did not respond")


async def hides_secret_values(subject: ProviderSubject) -> None:
    """Check that no value of a Secret is in an output that is not sensitive, in a message, or in an error."""
    secrets = {each for each in find_secrets(subject.settings) | find_secrets(subject.spec) if len(each) > 3}
    result = await subject.reconcile()
    texts = f"{result.outputs} {result.message} {result.handle}"
    if subject.make_foreign is not None:
        texts += str(await _expect_refusal(subject, "uid-2"))
    assert redact_secrets(texts, secrets) == redact_secrets(texts, ()), "a value of a Secret is visible"


PROVIDER_CASES: tuple[ProviderCase, ...] = (
    keeps_unchanged_items,
    corrects_differences,
    deletes_idempotently,
    keeps_unmarked_items,
    keeps_items_of_other_owners,
    releases_retained_items,
    resumes_after_any_cancellation,
    stops_when_cancelled,
    hides_secret_values,
)
"""The cases. Each needs a fresh subject."""


async def _expect_refusal(subject: ProviderSubject, uid: str) -> ForeignError:
    try:
        await subject.reconcile(uid=uid)
    except ForeignError as error:
        return error
    raise AssertionError(
        "expected a ForeignError, found a successful reconcile: an item of another owner was taken over"
    )


async def _cancel_after(call: Coroutine[Any, Any, Any], turns: int) -> bool:
    """Cancel a call after a number of turns of the loop; return whether it had ended before."""
    task = asyncio.get_running_loop().create_task(call)
    for _ in range(turns):
        if task.done():
            break
        await asyncio.wait({task}, timeout=0)
    has_ended = task.done()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=_SECONDS)
    assert done, "the call continues after its cancellation"
    if not task.cancelled():
        task.result()
    return has_ended
