"""What a pass works with: the cluster, the owner, the time; and the one write that ends it.

Components stage conditions on the owner in memory. `ReconcileContext.flush_status` persists them, once, and only if
something changed (invariant 4).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from konverge.clock import Clock, SystemClock
from konverge.component.applied_cache import AppliedCache
from konverge.component.client_protocol import ComponentClient
from konverge.component.condition_rules import read_generation
from konverge.component.reporting import ApplyMetrics, ConditionMetrics, EventRecorder, ResourceObserver
from konverge.component.time_limit import TimeLimit, call_with_limit
from konverge.errors import ConflictError, InvalidError, NotFoundError
from konverge.kube import (
    MESSAGE_LIMIT,
    Condition,
    GroupVersionKind,
    Object,
    ObjectKey,
    find_condition,
    remove_condition,
    set_condition,
)
from konverge.kube.secret_values import SecretValues
from konverge.mutation import copy_json

__all__ = ["ReconcileContext"]

T = TypeVar("T")

# A conflict means that someone else writes this owner's status: five tries, with the pauses that client-go's
# RetryOnConflict makes.
_FLUSH_RETRY_SECONDS = (0.01, 0.02, 0.04, 0.08)


@dataclass
class ReconcileContext:
    """The dependencies of one pass over one owner.

    Args:
        client: The cluster.
        owner: The custom resource as it was read for this pass; conditions are staged on it, in place.
        clock: The time.
        events: Where events go; None records none.
        metrics: Where conditions are counted after the flush; None counts none.
        applied_cache: What earlier passes learned about the server's answers. Share one between the passes of an
        operator.
        apply_metrics: Where the fate of each managed resource is counted; None counts none.
        time_limit: How long each of the author's functions may take; None is without a limit.
        observer: Who looks on; a `konverge.component.ReconcileObserver` is asked to run components in place of the
        engine.
            None is nobody.
        adopt: Whether components take over objects that exist already and are not theirs, where the resource does not
            say (`konverge.options.adopt`).
    """

    client: ComponentClient
    owner: Object
    clock: Clock = field(default_factory=SystemClock)
    events: EventRecorder | None = None
    metrics: ConditionMetrics | None = None
    applied_cache: AppliedCache = field(default_factory=AppliedCache)
    apply_metrics: ApplyMetrics | None = None
    time_limit: TimeLimit | None = None
    observer: ResourceObserver | None = None
    adopt: bool = True
    requeue_at: datetime | None = field(default=None, init=False)
    secret_values: SecretValues = field(init=False, repr=False)
    _status_read: Any = field(default=None, init=False, repr=False)
    _staged_types: set[str] = field(default_factory=set, init=False, repr=False)
    _retired_types: set[str] = field(default_factory=set, init=False, repr=False)
    # The components of this pass: the condition type of each; which of them has each object, and whether it applies it.
    _condition_types: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _objects: dict[str, tuple[str, bool]] = field(default_factory=dict, init=False, repr=False)
    # Status fields that this pass changed and that no write has carried yet.
    _changed_fields: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        self._status_read = copy_json(self.owner.get("status"))
        # A client of konverge's knows those of all passes; another one gets what this pass reads of its own resources.
        known = getattr(self.client, "secret_values", None)
        self.secret_values = known if isinstance(known, SecretValues) else SecretValues()

    @property
    def owner_gvk(self) -> GroupVersionKind:
        """The owner's kind."""
        return GroupVersionKind.of(self.owner)

    @property
    def owner_key(self) -> ObjectKey:
        """The owner's namespace and name."""
        return ObjectKey.of(self.owner)

    @property
    def owner_uid(self) -> str:
        """The owner's UID, which tells it from another of the same name; empty where it was not read from a server."""
        return str(self.owner["metadata"].get("uid") or "")

    @property
    def owner_generation(self) -> int | None:
        """The generation of the owner's spec; None for a kind without."""
        return read_generation(self.owner)

    def call(self, function: Callable[..., T], *args: object) -> T:
        """Call an author's function, for no longer than the time limit.

        Raises:
            konverge.errors.FunctionTimeoutError: It did not return in time.
            konverge.errors.KonvergeError: It raised what is no ``Exception``.
            Exception: Whatever it raises.
            KeyboardInterrupt: Somebody interrupted the process.
        """
        return call_with_limit(self.time_limit, function, *args)

    def hide_secret_values(self, answer: T, key: ObjectKey) -> T:
        """What a lifecycle function answers, its reason without values of Secrets that are known.

        Controllers repeat in the status of an object what admission said of what they made from it.

        Args:
            answer: Has a ``reason``, or is None.
            key: The object, whose name is shown whatever it is.
        """
        reason = getattr(answer, "reason", "")
        shown = self.secret_values.hide(reason, public=(key.name, key.namespace)) if reason else reason
        return answer if shown == reason else replace(answer, reason=shown)  # type: ignore[type-var]

    def condition(self, condition_type: str) -> Condition | None:
        """The owner's condition of that type as it stands now, staged ones included."""
        return find_condition(self.owner, condition_type)

    def register(self, component: str, condition_type: str, objects: Mapping[str, bool]) -> str:
        """Note which objects a component of this pass writes or removes, unless an earlier one has any of it already.

        The same component may come again.

        Args:
            component: Its name.
            condition_type: Its condition.
            objects: The identities of the objects; True for one that it applies, False for one that it only removes
                or releases. Two components may remove one object, but none what another one applies.

        Returns:
            What an earlier component of the pass has already, naming that; empty when all is noted.
        """
        known = self._condition_types.get(component, condition_type)
        if known != condition_type:
            return (
                f'another component of this owner is named "{component}" and reports as {known}: expected two names, '
                "since a name stands for the fields that a component owns"
            )
        other = next((name for name, each in self._condition_types.items() if each == condition_type), component)
        if other != component:
            return f'it reports as {condition_type}, and so does component "{other}": expected two types'
        for identity, is_applied in objects.items():
            first, was_applied = self._objects.get(identity, (component, False))
            if first != component and (is_applied or was_applied):
                return (
                    f'{identity} belongs to component "{first}" already, which comes first in each pass. Expected one '
                    "component for one object: leave it out of one of the two, or declare it read_only() there"
                )
        self._condition_types[component] = condition_type
        self._objects.update((identity, (component, is_applied)) for identity, is_applied in objects.items())
        return ""

    @property
    def staged_types(self) -> frozenset[str]:
        """The types of the conditions that were staged in this pass."""
        return frozenset(self._staged_types)

    def stage(self, condition: Condition) -> Condition:
        """Put a condition on the owner in memory and remember that its type is ours; returns it as stored."""
        self._staged_types.add(condition.type)
        message = condition.message
        if len(message) > MESSAGE_LIMIT:
            message = message[: MESSAGE_LIMIT - 1] + "…"
        # Half a character, as a file name may have it, cannot be sent: no condition of the owner would be written.
        message = message.encode(errors="replace").decode()
        condition = replace(condition, message=message)
        return set_condition(self.owner, condition, self.clock.now().replace(microsecond=0))

    def retire_conditions(self, *condition_types: str) -> None:
        """Take away conditions that nobody reports any more, those of components that are no longer built, for one.

        Only of types that the caller knows to be the operator's own: nothing on the owner tells whose a condition is.
        What was staged in this pass stays.
        """
        for condition_type in condition_types:
            if condition_type not in self._staged_types and remove_condition(self.owner, condition_type):
                self._retired_types.add(condition_type)

    def request_requeue(self, at: datetime | None) -> None:
        """Ask for another pass at that time; the earliest request of the pass wins, None asks for nothing."""
        if at is not None and (self.requeue_at is None or at < self.requeue_at):
            self.requeue_at = at

    @property
    def requeue_after(self) -> timedelta | None:
        """How long from now until the requested pass, zero if it is due; None when none was asked for."""
        return None if self.requeue_at is None else max(timedelta(0), self.requeue_at - self.clock.now())

    @asynccontextmanager
    async def flushing_status(self, refused: Callable[[InvalidError], bool] | None = None) -> AsyncIterator[None]:
        """Persist the staged status at the end of the block, also when the body raises.

        An error of the body wins over one of the flush, which then is noted on it. A cancelled body is not flushed: who
        cancels may have lost the right to write.

        Args:
            refused: Is told of a status that the kind's schema does not allow, and may take what is at fault out of
                `owner`. It tells whether it has: then the status is written once more.
        """
        try:
            yield
        except Exception as error:
            try:
                await self._flush_quietly(refused)
            except Exception as flush_error:  # noqa: BLE001  # the body's error is the one to raise, whatever this is
                error.add_note(f"The status could not be written either: {flush_error}")
            raise
        await self._flush_quietly(refused)

    async def _flush_quietly(self, refused: Callable[[InvalidError], bool] | None) -> None:
        try:
            await self.flush_status()
        except InvalidError as error:
            if refused is None or not refused(error):
                raise
            await self.flush_status()

    async def flush_status(self) -> bool:
        """Write the owner's status if this pass changed it; tells whether it was written.

        When another writer was faster, the owner is read again and this pass's changes are put on what is there now:
        conditions staged or retired here by type, and other status fields that the pass changed. Conditions of other
        writers stay as they have them. An owner that is gone meanwhile has nothing to report.

        Raises:
            konverge.errors.KonvergeError: The write failed for another reason, or conflicted too often.
        """
        if self.owner.get("status") == self._status_read:
            self._record_conditions()  # after a restart they are known to nobody yet
            return False
        for pause_seconds in _FLUSH_RETRY_SECONDS:
            try:
                return await self._write_status()
            except ConflictError:
                await self.clock.sleep(pause_seconds)
                if not await self._rebase_conditions():
                    return False
        return await self._write_status()

    async def _write_status(self) -> bool:
        try:
            written = await self.client.update(self.owner, subresource="status")
        except NotFoundError:
            return False
        self.owner["metadata"]["resourceVersion"] = written["metadata"]["resourceVersion"]
        self._status_read = copy_json(self.owner.get("status"))
        self._changed_fields.clear()
        self._record_conditions()
        return True

    async def _rebase_conditions(self) -> bool:
        try:
            server = await self.client.get(self.owner_gvk, self.owner_key, live=True)
        except NotFoundError:
            return False
        if server["metadata"].get("uid") != self.owner_uid:
            return False
        read = self._status_read or {}
        staged = self.owner.get("status") or {}
        # Compared with what was read *last*: what an earlier rebase took over from another writer is not this pass's.
        self._changed_fields |= {name for name in read.keys() | staged.keys() if staged.get(name) != read.get(name)} - {
            "conditions"
        }
        self._status_read = copy_json(server.get("status"))
        status = dict(server.get("status") or {})
        for name in self._changed_fields:
            if name in staged:
                status[name] = staged[name]
            else:
                status.pop(name, None)
        rebased: Object = {"status": status}
        for condition_type in sorted(self._staged_types):
            condition = find_condition(self.owner, condition_type)
            if condition is not None:
                set_condition(rebased, condition, self.clock.now())
        for condition_type in self._retired_types - self._staged_types:
            remove_condition(rebased, condition_type)
        self.owner["status"] = rebased["status"]
        self.owner["metadata"]["resourceVersion"] = server["metadata"]["resourceVersion"]
        return True

    def _record_conditions(self) -> None:
        if self.metrics is not None:
            listed = (self.owner.get("status") or {}).get("conditions") or ()
            self.metrics.record(
                self.owner, [Condition.from_object(found) for found in listed if isinstance(found, dict)]
            )
