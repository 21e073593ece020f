"""What any provider of the operator box has to do, as cases that its tests run.

Describe one item of a kind in a `ProviderSubject`, then run each of `PROVIDER_CASES` on a fresh one::

    @pytest.mark.parametrize("case", PROVIDER_CASES, ids=lambda case: case.__name__)
    async def test_it_keeps_the_rules(case):
        await case(ProviderSubject(provider=Notes(), kind="Note", …))

An `AssertionError` says which rule was broken. The cases talk to the real service, or to what stands for it in tests.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from konverge.kube import GroupVersionKind, ObjectKey
from konverge_box.expressions import reveal_sensitive
from konverge_box.providers import (
    ForeignError,
    ItemOwner,
    ItemRequest,
    ItemResult,
    OnDelete,
    Provider,
    ReconcileRequest,
)
from konverge_box.providers.call_runner import CallRunner
from konverge_box.providers.item_outcomes import check_result, find_secrets, redact_secrets
from konverge_box.providers.spec_conversion import extract_identity

__all__ = ["PROVIDER_CASES", "ProviderCase", "ProviderSubject"]

_OWNER_KIND = GroupVersionKind("conformance.konverge.dev", "v1", "Owner")
_KEY = ObjectKey("default", "conformance")
_MAX_TURNS = 200
_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class ProviderSubject:
    """One item of one kind, of which nothing is there yet.

    Args:
        provider: Whom to ask.
        kind: One of its kinds.
        name: What the item is called outside.
        settings: An instance of the provider's class for settings.
        spec: An instance of the kind's class.
        changed: Another one for the same item, which shows in what `look` finds.
        look: Answers what is there of the item, JSON that two looks at the same can be compared by; None for nothing.
        make_foreign: Makes something of that name that is nobody's; None where a kind has nothing to mark.
        unreachable: Settings of a service that accepts connections and never answers; None where there is none.
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
        """Ask for it, as a process does that remembers nothing."""
        request = ReconcileRequest(
            **self._build_arguments(uid, "delete", settings), spec=spec if spec is not None else self.spec
        )
        return check_result(await self.provider.reconcile(request))

    async def delete(
        self, on_delete: OnDelete = "delete", *, uid: str = "uid-1", settings: Struct | None = None
    ) -> None:
        """Have it deleted."""
        await self.provider.delete(ItemRequest(**self._build_arguments(uid, on_delete, settings)))

    def _build_arguments(self, uid: str, on_delete: OnDelete, settings: Struct | None) -> dict[str, Any]:
        kind = self.provider.kinds[self.kind]
        identity = extract_identity(self.spec, kind.identity, self.kind)
        told = msgspec.json.encode([uid, self.kind, self.name, identity])
        return {
            "kind": self.kind,
            "name": self.name if kind.is_named else "",
            "owner": ItemOwner(_OWNER_KIND, _KEY, uid),
            "settings": settings if settings is not None else self.settings,
            "identity": identity,
            "on_delete": on_delete,
            "handle": "",
            "token": hashlib.sha256(told).hexdigest()[:32],
        }


ProviderCase: TypeAlias = Callable[[ProviderSubject], Coroutine[Any, Any, None]]
"""Checks one rule."""


async def stays_as_it_is_when_asked_again(subject: ProviderSubject) -> None:
    """What is there and as wanted is not changed; outputs are the same."""
    assert await subject.look() is None, "something is there before the case has begun"
    first = await subject.reconcile()
    seen = await subject.look()
    assert seen is not None, "nothing is there after reconcile"
    second = await subject.reconcile()
    assert await subject.look() == seen, "the second reconcile changed what the first had made"
    assert reveal_sensitive(second.outputs) == reveal_sensitive(first.outputs), (
        "outputs differ though nothing has changed"
    )


async def corrects_what_differs(subject: ProviderSubject) -> None:
    """A changed spec, or a change from outside, is brought to what is wanted."""
    await subject.reconcile()
    seen = await subject.look()
    await subject.reconcile(subject.changed)
    changed = await subject.look()
    assert changed != seen, "the changed spec shows nowhere"
    await subject.reconcile()
    assert await subject.look() == seen, "the first spec does not come back"


async def deletes_what_is_there_and_what_is_not(subject: ProviderSubject) -> None:
    """Deleting is idempotent, also of what never was."""
    await subject.delete()
    await subject.reconcile()
    await subject.delete()
    assert await subject.look() is None, "it is there after delete"
    await subject.delete()
    await subject.reconcile()
    assert await subject.look() is not None, "it cannot be made again after delete"


async def spares_what_is_nobodys(subject: ProviderSubject) -> None:
    """What bears no mark is neither taken over nor deleted."""
    if subject.make_foreign is None:
        return
    await subject.make_foreign()
    seen = await subject.look()
    await _expect_refusal(subject, "uid-1")
    await subject.delete()
    await subject.delete("retain")
    assert await subject.look() == seen, "what is somebody else's was changed"


async def spares_what_is_another_owners(subject: ProviderSubject) -> None:
    """What another owner has is neither taken over nor deleted."""
    if subject.make_foreign is None:
        return
    await subject.reconcile()
    seen = await subject.look()
    await _expect_refusal(subject, "uid-2")
    await subject.delete(uid="uid-2")
    await subject.delete("retain", uid="uid-2")
    assert await subject.look() == seen, "what is another owner's was changed"


async def lets_go_of_what_is_retained(subject: ProviderSubject) -> None:
    """What is retained stays, and the next owner of the same kind, namespace and name has it again."""
    await subject.reconcile()
    await subject.delete("retain")
    await subject.delete("retain")
    assert await subject.look() is not None, "it was to be retained, and is gone"
    if subject.make_foreign is not None:
        await subject.reconcile(uid="uid-2")
        await _expect_refusal(subject, "uid-1")


async def goes_on_after_being_cancelled_anywhere(subject: ProviderSubject) -> None:
    """A call may be cancelled at any moment; the next one finishes the work, and nothing is there twice."""
    await subject.reconcile()
    wanted = await subject.look()
    await subject.delete()
    turns = 0
    while turns < _MAX_TURNS:
        has_ended = await _cancel_after(subject.reconcile(), turns)
        await subject.reconcile()
        assert await subject.look() == wanted, f"cancelled after {turns} turns of the loop, it ends otherwise"
        await _cancel_after(subject.delete(), turns)
        await subject.delete()
        assert await subject.look() is None, f"a delete that was cancelled after {turns} turns cannot be finished"
        if has_ended:
            return
        turns = turns * 2 + 1


async def ends_when_it_is_cancelled(subject: ProviderSubject) -> None:
    """A service that never answers holds a call up only until it is cancelled."""
    if subject.unreachable is None:
        return
    for call in (
        lambda: subject.reconcile(settings=subject.unreachable),
        lambda: subject.delete(settings=subject.unreachable),
    ):
        attempts = CallRunner(1)
        try:
            await attempts.run_call("uid-1", call, 0.3)
        except Exception:  # noqa: BLE001  # any error of a service that does not answer will do
            assert not attempts.list_stuck_owners(), "the call goes on after it was cancelled"
        else:
            raise AssertionError("the call came to an end although nobody has answered")


async def shows_no_secret(subject: ProviderSubject) -> None:
    """No value of a Secret is in an output that is not sensitive, in a message, or in an error."""
    secrets = {each for each in find_secrets(subject.settings) | find_secrets(subject.spec) if len(each) > 3}
    result = await subject.reconcile()
    shown = f"{result.outputs} {result.message} {result.handle}"
    if subject.make_foreign is not None:
        shown += str(await _expect_refusal(subject, "uid-2"))
    assert redact_secrets(shown, secrets) == redact_secrets(shown, ()), "a value of a Secret shows"


PROVIDER_CASES: tuple[ProviderCase, ...] = (
    stays_as_it_is_when_asked_again,
    corrects_what_differs,
    deletes_what_is_there_and_what_is_not,
    spares_what_is_nobodys,
    spares_what_is_another_owners,
    lets_go_of_what_is_retained,
    goes_on_after_being_cancelled_anywhere,
    ends_when_it_is_cancelled,
    shows_no_secret,
)
"""The rules; each case has a subject of its own."""


async def _expect_refusal(subject: ProviderSubject, uid: str) -> ForeignError:
    try:
        await subject.reconcile(uid=uid)
    except ForeignError as error:
        return error
    raise AssertionError("what belongs to somebody else was taken over: expected a ForeignError")


async def _cancel_after(call: Coroutine[Any, Any, Any], turns: int) -> bool:
    """Cancel a call after so many turns of the loop; tells whether it had ended before."""
    task = asyncio.get_running_loop().create_task(call)
    for _ in range(turns):
        if task.done():
            break
        await asyncio.wait({task}, timeout=0)
    has_ended = task.done()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=_SECONDS)
    assert done, "the call goes on after it was cancelled"
    if not task.cancelled():
        task.result()
    return has_ended
