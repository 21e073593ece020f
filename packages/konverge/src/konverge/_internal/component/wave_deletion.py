"""Deletion of an owner's objects in waves: the objects of a wave are deleted when those of earlier waves are gone.

Each call decides from the objects that exist, so a crash after any request changes nothing (invariant 5). An object
that does not belong to its component stays, and no wave waits for it (invariant 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource
from konverge._internal.component.error_wrapping import join_errors, wrap_errors
from konverge._internal.component.object_access import is_kind_not_served, record_warning
from konverge._internal.component.object_operations import delete_object
from konverge._internal.component.ownership import is_ours
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.component.resource_options import DeletionWave, ResourceMode
from konverge._internal.kube import Object, is_deleting, parse_time
from konverge.errors import ConfigurationError, KindNotServedError, NotFoundError, ReconcileError

__all__ = ["DeletionWaveReport", "delete_in_waves", "list_waves"]

_MAX_NAMES = 5
_FOREGROUND = "foregroundDeletion"
# For an object without a watch: no event reports that it is gone.
_POLL_INTERVAL = timedelta(seconds=15)
# The garbage collector watches the kinds with these verbs.
_COLLECTED_VERBS = frozenset({"delete", "list", "watch"})
_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)


class DeletionWaveReport(msgspec.Struct, frozen=True, rename="camel"):
    """One wave of the deletion of an owner.

    Attributes:
        number: The number of the wave.
        remaining: The objects that still exist, each with the finalizers that hold it.
        ends_at: The time when the last time limit of these objects has passed; None if one has none, or none remains.
    """

    number: int
    remaining: tuple[str, ...] = ()
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _WaveMember:
    """One object of a wave."""

    component: ComponentSpec
    entry: RegisteredResource
    wave: DeletionWave


async def delete_in_waves(ctx: ReconcileContext, *components: ComponentSpec) -> str:
    """Delete the objects of the first wave that is not gone, in all components of an owner that is being deleted.

    Objects without the option `konverge.options.deletion_wave` are left to the garbage collector. The deletion of an
    object is in the foreground: it is gone when its dependents are, for example the Pods of a StatefulSet.

    A wave stops waiting for an object when the time limit of the object, counted from the owner's deletion timestamp,
    has passed; a Warning event on the owner reports each step that is taken all the same.

    Args:
        ctx: The context of the reconcile, whose owner is being deleted.
        *components: The components of the owner.

    Returns:
        What the deletion waits for, as a part of a sentence; empty when the objects of all waves are gone.

    Raises:
        konverge.errors.ConfigurationError: The owner is not being deleted.
        konverge.errors.ReconcileError: A request failed; the other objects of the wave are deleted all the same.
    """
    if not is_deleting(ctx.owner):
        raise ConfigurationError(
            f"{ctx.owner_gvk.kind} {ctx.owner_key}: deletion waves expect an owner that is being deleted, found one "
            "without a deletion timestamp; to delete single objects, use options.delete()"
        )
    return await _WaveDeletion(ctx, _list_members(components)).run()


async def list_waves(ctx: ReconcileContext, *components: ComponentSpec) -> tuple[DeletionWaveReport, ...]:
    """Return the waves of an owner that is being deleted, in order; nothing is written.

    Args:
        ctx: The context, whose owner is being deleted.
        *components: The components of the owner.

    Raises:
        konverge.errors.ReconcileError: A read failed.
    """
    members = _list_members(components)
    deletion = _WaveDeletion(ctx, members)
    reports = []
    for number in sorted({member.wave.number for member in members}):
        found = [
            (member, live)
            for member in members
            if member.wave.number == number and (live := await _find_remaining(ctx, member)) is not None
        ]
        deadlines = [deletion.find_deadline(member) for member, _ in found]
        known = [deadline for deadline in deadlines if deadline is not None]
        remaining = tuple(_describe_remaining(member, live) for member, live in found)
        reports.append(
            DeletionWaveReport(number, remaining, max(known) if known and len(known) == len(deadlines) else None)
        )
    return tuple(reports)


async def _find_remaining(ctx: ReconcileContext, member: _WaveMember) -> Object | None:
    """Return the object if it exists and belongs to its component."""
    resource = member.entry.resource
    with wrap_errors("failed to read resource", resource.identity):
        try:
            live = await ctx.client.get(resource.gvk, resource.key)
        except NotFoundError:
            return None
        except KindNotServedError as error:
            if not is_kind_not_served(error):
                raise
            return None
    is_own = member.entry.treatment.deletes_even_if_not_ours or is_ours(live, ctx.owner, member.component.name)
    return live if is_own else None


def _list_members(components: Iterable[ComponentSpec]) -> list[_WaveMember]:
    return [
        _WaveMember(component, entry, wave)
        for component in components
        for entry in component.entries
        if (wave := entry.treatment.deletion_wave) is not None and entry.treatment.mode is not ResourceMode.ORPHAN
    ]


class _WaveDeletion:
    """One reconcile of a deletion in waves."""

    def __init__(self, ctx: ReconcileContext, members: Sequence[_WaveMember]) -> None:
        self._ctx = ctx
        self._members = members
        self._deleted_at = parse_time(ctx.owner["metadata"]["deletionTimestamp"])
        self._now = ctx.clock.now()
        # Descriptions of the objects whose time limit has passed, and whether an event has reported them.
        self._overdue: list[str] = []
        self._has_reported = False

    async def run(self) -> str:
        numbers = sorted({member.wave.number for member in self._members})
        for number in numbers:
            waiting = await self._delete_wave([member for member in self._members if member.wave.number == number])
            if waiting:
                earlier = f", no longer for {_format_list(self._overdue)}" if self._overdue else ""
                return f"wave {number} of the deletion waits for {_format_list(waiting)}{earlier}"
        if self._overdue:
            self._report_overdue(self._members[-1], "the deletion ends")
        return ""

    async def _delete_wave(self, members: Sequence[_WaveMember]) -> list[str]:
        """Delete the objects of one wave; return those that the next wave waits for."""
        waiting: list[str] = []
        errors: list[ReconcileError] = []
        for member in members:
            deadline = self.find_deadline(member)
            is_overdue = deadline is not None and self._now >= deadline
            try:
                remaining = await self._delete_member(member)
            except ReconcileError as error:  # the other objects of the wave are deleted all the same
                if is_overdue:
                    self._overdue.append(f"{member.entry.identity} ({error})")
                    continue
                errors.append(error)
                self._ctx.request_requeue(deadline)
                continue
            if remaining is None:
                continue
            if is_overdue:
                self._overdue.append(_describe_remaining(member, remaining))
                continue
            waiting.append(_describe_remaining(member, remaining))
            self._ctx.request_requeue(deadline)
            self._ctx.request_requeue(self._now + _POLL_INTERVAL)
        if errors:
            raise join_errors(errors)
        return waiting

    async def _delete_member(self, member: _WaveMember) -> Object | None:
        """Delete one object if it belongs to its component; return it while it exists."""
        overdue_before = bool(self._overdue)
        deleted = await delete_object(
            self._ctx,
            member.component,
            member.entry,
            message=f"deleted in wave {member.wave.number} of the deletion",
            propagation="Foreground" if await self._is_garbage_collected(member) else "Background",
        )
        if deleted.is_requested and overdue_before:
            self._report_overdue(member, f"{member.entry.identity} is deleted")
        return deleted.remaining

    async def _is_garbage_collected(self, member: _WaveMember) -> bool:
        """Return True if the garbage collector watches the kind: only then a deletion in the foreground ends."""
        resource = member.entry.resource
        with wrap_errors("failed to delete resource", resource.identity):
            try:
                return (await self._ctx.client.mapping(resource.gvk)).verbs >= _COLLECTED_VERBS
            except KindNotServedError as error:
                if not is_kind_not_served(error):
                    raise
                return False

    def find_deadline(self, member: _WaveMember) -> datetime | None:
        """Return the time until which a wave waits for an object; None without a limit."""
        timeout = member.wave.timeout
        if timeout is None or timeout > _END_OF_TIME - self._deleted_at:
            return None
        return self._deleted_at + timeout

    def _report_overdue(self, member: _WaveMember, next_step: str) -> None:
        """Record once in a reconcile that the deletion goes on although objects of earlier waves still exist."""
        if self._has_reported:
            return
        self._has_reported = True
        message = f"The time limit of {_format_list(self._overdue)} has passed: {next_step} although it still exists"
        record_warning(
            self._ctx,
            member.entry.resource,
            reason="DeletionOverdue",
            message=message,
            action="Delete",
            related=self._ctx.owner,
        )


def _describe_remaining(member: _WaveMember, remaining: Object) -> str:
    """Describe an object that still exists, with its finalizers: they say who can end the wait."""
    finalizers = remaining["metadata"].get("finalizers") or []
    others = [name for name in finalizers if name != _FOREGROUND]
    if others:
        return f"{member.entry.identity} (finalizer {_format_list(others)})"
    return f"{member.entry.identity} (its dependents)" if finalizers else member.entry.identity


def _format_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
