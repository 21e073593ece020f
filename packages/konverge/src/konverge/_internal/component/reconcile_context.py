"""The context of a reconcile: the cluster, the owner, the time, and the status write at its end.

Components stage conditions: `ReconcileContext.stage` sets them on the owner in memory. `ReconcileContext.flush_status`
writes them once, and only if they changed (invariant 4).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar

from konverge._internal.component.applied_cache import AppliedCache
from konverge._internal.component.client_protocol import ComponentClient
from konverge._internal.component.condition_rules import read_generation
from konverge._internal.component.diagnosis import Diagnosis
from konverge._internal.component.remedies import Remedies
from konverge._internal.component.reporting import ApplyMetrics, ConditionMetrics, EventRecorder, ResourceObserver
from konverge._internal.component.status_rebase import FieldPath, find_changed_paths, move_changes
from konverge._internal.component.time_limit import TimeLimit, call_with_limit
from konverge._internal.kube import (
    MESSAGE_LIMIT,
    Condition,
    GroupVersionKind,
    Object,
    ObjectKey,
    find_condition,
    remove_condition,
    set_condition,
)
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.mutation import copy_json
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import ConflictError, InvalidError, KonvergeError, NotFoundError, StatusNotStoredError

__all__ = ["ComponentRunner", "ReconcileContext"]

T = TypeVar("T")

ComponentRunner: TypeAlias = "Callable[[Any, ReconcileContext], Awaitable[Condition]]"
"""A function that reconciles a component in a context and returns its condition."""

# A conflict means that another client writes this owner's status: five tries, with the delays of client-go's
# RetryOnConflict.
_FLUSH_RETRY_SECONDS = (0.01, 0.02, 0.04, 0.08)


@dataclass
class ReconcileContext:
    """The dependencies of one reconcile of one owner.

    Args:
        client: The cluster.
        owner: The custom resource as it was read for this reconcile. `stage` changes its conditions in place.
        clock: The time.
        events: The recorder of events; None records none.
        metrics: The metrics of conditions, recorded after the flush; None records none.
        applied_cache: The results of earlier applies. Share one between all reconciles of an operator.
        apply_metrics: The metrics of each managed resource; None records none.
        time_limit: The time limit of each author function; None is without a limit.
        observer: An observer of the resources; None observes nothing.
        runner: The function that reconciles components, such as that of a dry run; None is the engine.
        adopt: The default for resources without the option `konverge.options.adopt`: True lets components adopt
            objects that exist already and do not belong to them.
        entropy: The randomness for generated values.
        diagnosis: The examination of late workloads, whose causes follow the reasons of the condition; None examines
            nothing.
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
    runner: ComponentRunner | None = None
    adopt: bool = True
    entropy: Entropy = field(default_factory=SystemEntropy)
    diagnosis: Diagnosis | None = None
    requeue_at: datetime | None = field(default=None, init=False)
    secret_values: SecretValues = field(init=False, repr=False)
    # The advice of error messages, in the words of those who declare the objects.
    remedies: Remedies = field(default_factory=Remedies, init=False, repr=False)
    _status_read: Any = field(default=None, init=False, repr=False)
    _staged_types: set[str] = field(default_factory=set, init=False, repr=False)
    _retired_types: set[str] = field(default_factory=set, init=False, repr=False)
    # The components of this reconcile: their condition types; the component of each object, and if it applies it.
    _condition_types: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _objects: dict[str, tuple[str, bool]] = field(default_factory=dict, init=False, repr=False)
    # Paths of the status that this reconcile changed and that no write contained yet.
    _changed_paths: set[FieldPath] = field(default_factory=set, init=False, repr=False)
    # Status fields of the author: the server must store each as it was sent.
    _staged_fields: set[str] = field(default_factory=set, init=False, repr=False)
    # The author's fields for a status that another writer stored meanwhile; None if no class declares them.
    _complete_fields: Callable[[Any], Object] | None = field(default=None, init=False, repr=False)
    # The live objects of each component of this reconcile, by identity.
    _live_objects: dict[str, dict[str, Object]] = field(default_factory=dict, init=False, repr=False)
    _open_flushes: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        self._status_read = copy_json(self.owner.get("status"))
        # konverge's client knows the values of all reconciles; for any other client, this reconcile collects its own.
        known = getattr(self.client, "secret_values", None)
        self.secret_values = known if isinstance(known, SecretValues) else SecretValues()

    @property
    def owner_gvk(self) -> GroupVersionKind:
        """The group, version and kind of the owner."""
        return GroupVersionKind.of(self.owner)

    @property
    def owner_key(self) -> ObjectKey:
        """The owner's namespace and name."""
        return ObjectKey.of(self.owner)

    @property
    def owner_uid(self) -> str:
        """The owner's UID, which differs for a later owner with the same name; empty if no server set it."""
        return str(self.owner["metadata"].get("uid") or "")

    @property
    def owner_generation(self) -> int | None:
        """The generation of the owner's spec; None for a kind without generations."""
        return read_generation(self.owner)

    def call(self, function: Callable[..., T], *args: object) -> T:
        """Call an author function within the time limit.

        Raises:
            konverge.errors.FunctionTimeoutError: The function did not return in time.
            konverge.errors.KonvergeError: The function raised a ``BaseException`` that is not an ``Exception``.
            Exception: The exception of the function.
            KeyboardInterrupt: A user interrupted the process.
        """
        return call_with_limit(self.time_limit, function, *args)

    def hide_secret_values(self, answer: T, key: ObjectKey) -> T:
        """Return the result of a lifecycle function with known values of Secrets redacted in its reason.

        Such values can be in a reason, because controllers copy messages of admission into the status of an object.

        Args:
            answer: A result with a ``reason``, or None.
            key: The object; its name and namespace are not redacted.
        """
        reason = getattr(answer, "reason", "")
        redacted = self.secret_values.hide(reason, public=(key.name, key.namespace)) if reason else reason
        return answer if redacted == reason else replace(answer, reason=redacted)  # type: ignore[type-var]  # with a reason, it is a dataclass

    def condition(self, condition_type: str) -> Condition | None:
        """Return the owner's condition of that type: the one that this reconcile staged, else the stored one."""
        return find_condition(self.owner, condition_type)

    def register(self, component: str, condition_type: str, objects: Mapping[str, bool]) -> str:
        """Register the objects that a component writes, unless they conflict with an earlier component.

        The same component can be registered again.

        Args:
            component: The name of the component.
            condition_type: The condition type of the component.
            objects: The identities of the objects; True for one that it applies, False for one that it only deletes
                or releases. Two components can delete the same object, but not one that another component applies.

        Returns:
            The conflict with an earlier component of this reconcile; empty if the component is registered.
        """
        registered = self._condition_types.get(component, condition_type)
        if registered != condition_type:
            return (
                f'another component of this owner has the name "{component}" and condition type {registered}: expected '
                "two names, because the name is part of the field manager"
            )
        other = next((name for name, used in self._condition_types.items() if used == condition_type), component)
        if other != component:
            return f'component "{other}" has condition type {condition_type} too: expected two condition types'
        for identity, is_applied in objects.items():
            first, was_applied = self._objects.get(identity, (component, False))
            if first != component and (is_applied or was_applied):
                return (
                    f'{identity} belongs to component "{first}" already: expected one component for each object. '
                    f"{self.remedies.two_components}"
                )
        self._condition_types[component] = condition_type
        self._live_objects[component] = {}
        self._objects.update((identity, (component, is_applied)) for identity, is_applied in objects.items())
        return ""

    def describe_missing_finalizer(self) -> str:
        """Describe why no finalizer will delete the owner's components in waves; empty if one does, or if not known."""
        return ""

    def record_live(self, component: str, identity: str, live: Object) -> None:
        """Record the live object of a resource for the author's later functions."""
        self._live_objects[component][identity] = live

    def list_reconciled(self) -> list[tuple[str, str, Mapping[str, Object]]]:
        """Return name, condition type and live objects by identity of each component that this reconcile has run."""
        return [(name, self._condition_types[name], objects) for name, objects in self._live_objects.items()]

    @property
    def staged_types(self) -> frozenset[str]:
        """The types of the conditions that this reconcile set with `stage`."""
        return frozenset(self._staged_types)

    def stage(self, condition: Condition) -> Condition:
        """Set a condition on the owner in memory, register its type as ours, and return the condition as stored.

        The transition time changes only if the status differs from the one that the owner has in the cluster: of
        several conditions of a type, only the last one is ever written.
        """
        if condition.type in self._staged_types:
            self.restore_condition(condition.type)
        self._staged_types.add(condition.type)
        message = condition.message
        if len(message) > MESSAGE_LIMIT:
            message = message[: MESSAGE_LIMIT - 1] + "…"
        # A lone surrogate, as in a file name, cannot be encoded: no condition of the owner would be written.
        message = message.encode(errors="replace").decode()
        condition = replace(condition, message=message)
        return set_condition(self.owner, condition, self.clock.now().replace(microsecond=0))

    def read_stored_condition(self, condition_type: str) -> Condition | None:
        """Return the condition that the last read or write of the status contained."""
        return find_condition({"status": self._status_read}, condition_type)

    def restore_condition(self, condition_type: str) -> None:
        """Put back the condition that the last read or write of the status contained."""
        stored = self.read_stored_condition(condition_type)
        if stored is None:
            remove_condition(self.owner, condition_type)
        else:
            set_condition(self.owner, stored, self.clock.now())

    def stage_fields(
        self,
        fields: Mapping[str, Any],
        *,
        absent: Iterable[str] = (),
        complete: Callable[[Any], Object] | None = None,
    ) -> None:
        """Set fields of the owner's status in memory, other than conditions, and remove others.

        Args:
            fields: The JSON values by name.
            absent: The names of the fields to remove.
            complete: Returns the fields together with those that only the passed status has, for the status of another
                writer that is stored meanwhile; None merges mappings by field.
        """
        self._complete_fields = complete
        status = self.owner.get("status")
        if not isinstance(status, dict):
            status = self.owner["status"] = {}
        for name in absent:
            status.pop(name, None)
            self._staged_fields.add(name)
        for name, value in fields.items():
            # An equal value is not set again, so that the order of its fields stays.
            if name not in status or status[name] != value:
                status[name] = value
            self._staged_fields.add(name)

    def withdraw_fields(self) -> bool:
        """Undo `stage_fields`: each field gets the value that it has in the cluster; return True if one differed."""
        stored: Object = self._status_read if isinstance(self._status_read, dict) else {}
        status: Object = self.owner.get("status") or {}
        differing = [name for name in self._staged_fields if status.get(name) != stored.get(name)]
        for name in differing:
            status.pop(name, None)
            if name in stored:
                status[name] = copy_json(stored[name])
        self._staged_fields.clear()
        self._complete_fields = None
        return bool(differing)

    def retire_conditions(self, *condition_types: str) -> None:
        """Remove conditions that are no longer reported, for example those of components that no longer exist.

        The caller must pass only the operator's own types: a condition does not show who wrote it. A condition that
        this reconcile staged stays.
        """
        for condition_type in condition_types:
            if condition_type not in self._staged_types and remove_condition(self.owner, condition_type):
                self._retired_types.add(condition_type)

    def request_requeue(self, at: datetime | None) -> None:
        """Request a requeue at that time. The earliest request of the reconcile wins; None requests nothing."""
        if at is not None and (self.requeue_at is None or at < self.requeue_at):
            self.requeue_at = at

    @property
    def requeue_after(self) -> timedelta | None:
        """The time from now until the requested requeue, zero if it is due; None without a request."""
        return None if self.requeue_at is None else max(timedelta(0), self.requeue_at - self.clock.now())

    @asynccontextmanager
    async def flushing_status(self, refused: Callable[[KonvergeError], bool] | None = None) -> AsyncIterator[None]:
        """Write the staged status at the end of the block, also if the body raises.

        An error of the body wins over an error of the flush, which becomes a note on it. After a cancellation the
        status is not written, because the replica may have lost its Lease. If the body of a block inside of another
        block raises, only the outer block writes.

        Args:
            refused: Called with the error if the kind's schema refuses the status or drops a part of it. It can remove
                the invalid part from `owner`; if it returns True, the status is written once more.
        """
        self._open_flushes += 1
        try:
            yield
        except Exception as error:
            if self._open_flushes > 1:
                raise
            try:
                await self._flush_quietly(refused)
            except Exception as flush_error:  # noqa: BLE001  # the error of the body is raised
                error.add_note(f"The status could not be written either: {flush_error}")
            raise
        finally:
            self._open_flushes -= 1
        await self._flush_quietly(refused)

    async def _flush_quietly(self, refused: Callable[[KonvergeError], bool] | None) -> None:
        try:
            await self.flush_status()
        except (InvalidError, StatusNotStoredError) as error:
            if refused is None or not refused(error):
                raise
            await self.flush_status()

    async def flush_status(self) -> bool:
        """Write the owner's status if this reconcile changed it; return True if it was written.

        After a conflict, the owner is read again and gets this reconcile's changes: conditions staged or retired by
        type, and other changed status fields at any depth. Conditions and fields of other writers stay, such as those
        of a newer version of the operator. An owner that is gone gets no write.

        Raises:
            konverge.errors.StatusNotStoredError: The server dropped or changed a field of `stage_fields`.
            konverge.errors.KonvergeError: The write failed for another reason, or conflicted too often.
        """
        if self.owner.get("status") == self._status_read:
            self._record_conditions()  # after a restart, the metrics do not have them yet
            return False
        for delay_seconds in _FLUSH_RETRY_SECONDS:
            try:
                return await self._write_status()
            except ConflictError:
                await self.clock.sleep(delay_seconds)
                if not await self._rebase_conditions():
                    return False
        return await self._write_status()

    async def _write_status(self) -> bool:
        try:
            written = await self.client.update(self.owner, subresource="status")
        except NotFoundError:
            return False
        self._record_written(written)
        self._check_stored_fields(written)
        return True

    def _record_written(self, written: Object) -> None:
        self.owner["metadata"]["resourceVersion"] = written["metadata"]["resourceVersion"]
        self._status_read = copy_json(self.owner.get("status"))
        self._changed_paths.clear()
        self._record_conditions()

    def _check_stored_fields(self, written: Object) -> None:
        """Compare the author's fields with the response of the server.

        Raises:
            konverge.errors.StatusNotStoredError: A field differs: every later reconcile would write it again.
        """
        sent, stored = self.owner.get("status") or {}, written.get("status")
        if not isinstance(stored, dict):
            return
        missing, other = [], []
        for name in sorted(self._staged_fields):
            if name in sent and name not in stored:
                missing.append(f"status.{name}")
            elif sent.get(name) != stored.get(name):
                other.append(f"status.{name}")
        # The next reconcile reads what the server has stored.
        self._status_read = copy_json(stored)
        if missing or other:
            raise StatusNotStoredError(f"{self.owner_gvk.kind} {self.owner_key}", tuple(missing), tuple(other))

    def _view_owner(self, owner: Object) -> Object:
        """Return the owner in the form of `owner`, as the server has it now."""
        return owner

    async def _rebase_conditions(self) -> bool:
        try:
            server = self._view_owner(await self.client.get(self.owner_gvk, self.owner_key, live=True))
        except NotFoundError:
            return False
        if server["metadata"].get("uid") != self.owner_uid:
            return False
        staged = self.owner.get("status") or {}
        # Compared with the *last* read: a field that an earlier rebase took from another writer is not our change.
        self._changed_paths |= find_changed_paths(self._status_read, staged)
        self._status_read = copy_json(server.get("status"))
        status = self._move_changes(staged, dict(server.get("status") or {}))
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

    def _move_changes(self, staged: Object, stored: Object) -> Object:
        """Return the stored status with the changes of this reconcile, without its conditions."""
        moved = move_changes(self._changed_paths, staged, stored)
        if self._complete_fields is not None:
            # Lists with keys, too. A value that the author changed after it was staged is not that of the class.
            before, now = self._complete_fields(staged), self._complete_fields(stored)
            changed = {path[0] for path in self._changed_paths}
            moved |= {name: now[name] for name in changed & now.keys() if before[name] == staged.get(name)}
        return moved

    def _record_conditions(self) -> None:
        if self.metrics is not None:
            listed = (self.owner.get("status") or {}).get("conditions") or ()
            self.metrics.record(
                self.owner, [Condition.from_object(entry) for entry in listed if isinstance(entry, dict)]
            )
