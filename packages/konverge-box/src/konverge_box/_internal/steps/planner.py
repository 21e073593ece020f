"""The plan of one reconcile: the objects of all groups, the decision about each, and the rendered objects.

Names and conditions alone determine which objects should exist, before any object is rendered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.primitives.value_generation import (
    build_stamps,
    compute_rotation_time,
    find_rotation_request,
)
from konverge.errors import KindNotServedError, KindUnreachableError, KonvergeError, NotFoundError, format_error
from konverge_box._internal.expressions import ExpressionError, find_earliest_change, to_sensitive
from konverge_box._internal.file import KINDS
from konverge_box._internal.steps.apply_policy import ApplyTiming, ObjectAction, ObservedObject, decide_action
from konverge_box._internal.steps.compiled_group import CompiledGroup
from konverge_box._internal.steps.compiled_resource import LATE_NAMES, CompiledResource
from konverge_box._internal.steps.creation_marks import compute_mark, read_marks
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.labels import ENTRY, OWNER_UID
from konverge_box._internal.steps.object_reader import MappingReader, list_owned_objects
from konverge_box._internal.steps.ownership import can_own, describe_other, is_handed_over, is_of_earlier_life, is_ours
from konverge_box._internal.steps.resource_plan import PlannedGroup, PlannedResource, ResourcePlan
from konverge_box._internal.steps.scope import Scope
from konverge_box._internal.steps.tls_secret import TLS_SECRET_TYPE

__all__ = ["MAX_OBJECTS", "Planner", "is_namespaced_resource"]

MAX_OBJECTS = 5000
"""Maximum number of objects of one custom resource."""

_Identity = tuple[str, str, str, str]
# Absent values of these names are errors: no group creates them.
_EARLY_NAMES = frozenset({"apiVersion", "kind", "metadata", "spec", "status", "cross", "external"})


@dataclass(slots=True)
class _CandidateObject:
    """An object of an entry before the decision about it."""

    group: int
    resource: CompiledResource
    scope: Scope
    key: ObjectKey
    conditions_hold: bool
    is_namespaced: bool

    @property
    def identity(self) -> _Identity:
        return (*self.resource.gvk.group_kind, *self.key)


class Planner:
    """One run of `steps.resource_groups.ResourceGroups.plan`.

    Args:
        groups: The groups, in their order.
        scope: The scope with the results of earlier steps.
        owner: The custom resource as it was read.
        reader: Reads from the caches.
        now: The time of the reconcile.
    """

    def __init__(
        self,
        groups: tuple[CompiledGroup, ...],
        scope: Scope,
        owner: Object,
        reader: MappingReader,
        now: datetime,
    ) -> None:
        self._groups = groups
        self._scope = scope
        self._owner = owner
        self._reader = reader
        self._now = now
        self._own_key = ObjectKey.of(owner)
        self._uid = str(owner["metadata"]["uid"])
        self._marks = frozenset(read_marks(owner))
        self._on = [scope.holds(group.conditions) for group in groups]
        self._wakes: list[datetime] = []
        resources = [resource for group in groups for resource in group.resources]
        self._lasting = frozenset(each.entry for each in resources if not each.apply_policy.can_remove)

    async def plan(self) -> ResourcePlan:
        """Decide about each object, then render the objects that are applied.

        Raises:
            konverge.errors.KonvergeError: See `steps.resource_groups.ResourceGroups.plan`.
        """
        candidates = [each async for each in self._iter_candidates()]
        wanted = self._find_desired(candidates)
        entries: list[list[PlannedResource]] = [[] for _ in self._groups]
        decided = set(wanted)
        for each in candidates:
            if not each.conditions_hold:
                is_first = each.identity not in decided
                if each.resource.apply_policy.can_remove:  # otherwise the next entry decides
                    decided.add(each.identity)
                entries[each.group].append(await self._plan_undesired(each, is_wanted=not is_first))
            else:
                entries[each.group].append(await self._plan_object(each))
        async for group, leftover in self._iter_unnamed_objects(decided):
            entries[group].append(leftover)
        return ResourcePlan(
            tuple(
                PlannedGroup(
                    group.name,
                    group.condition_type,
                    tuple(entries[place]),
                    is_on=self._on[place],
                    is_suspended=group.is_suspended(self._scope),
                    grace_period=group.grace_period,
                    waits_for=group.waits_for,
                )
                for place, group in enumerate(self._groups)
            ),
            min((moment for moment in self._iter_changes() if moment is not None), default=None),
        )

    def _iter_changes(self) -> Iterator[datetime | None]:
        yield from self._wakes
        for group in self._groups:
            yield find_earliest_change(group.time_conditions, self._now)

    # The objects to decide about.

    async def _iter_candidates(self) -> AsyncIterator[_CandidateObject]:
        count = 0
        for place, group in enumerate(self._groups):
            for resource in group.resources:
                try:
                    is_namespaced = await is_namespaced_resource(resource, self._reader)
                except KindUnreachableError:
                    is_namespaced = (
                        True  # its component reports that the kind is unreachable; the other groups continue
                    )
                for item_scope in self._list_scopes(place, resource):
                    is_on = self._on[place] and item_scope.holds(resource.conditions)
                    for key in self._list_keys(resource, item_scope, is_on=is_on, is_namespaced=is_namespaced):
                        count += 1
                        if count > MAX_OBJECTS:
                            problem = f"expected at most {MAX_OBJECTS} objects of one custom resource, found more"
                            raise StepError(resource.path, problem)
                        yield _CandidateObject(place, resource, item_scope, key, is_on, is_namespaced)

    def _list_scopes(self, place: int, resource: CompiledResource) -> list[Scope]:
        try:
            return resource.repetition.list_scopes(self._scope)
        except StepError:
            if self._on[place]:
                raise
            return []  # a group can be off because its list does not exist

    def _list_keys(
        self, resource: CompiledResource, item_scope: Scope, *, is_on: bool, is_namespaced: bool
    ) -> list[ObjectKey]:
        try:
            return resource.list_keys(item_scope, self._own_key.namespace, namespaced=is_namespaced)
        except (ExpressionError, StepError):
            if is_on:
                raise
            return []  # an entry that is off may have no name: `_iter_unnamed_objects` finds its earlier objects

    def _find_desired(self, candidates: Iterable[_CandidateObject]) -> dict[_Identity, str]:
        wanted: dict[_Identity, str] = {}
        for each in candidates:
            if not each.conditions_hold:
                continue
            path = each.resource.path
            if each.resource.repetition.is_loop:
                path = f"{path} (item {each.scope.names['index']})"
            if each.identity in wanted:
                problem = (
                    f"{each.resource.gvk.kind} {each.key} is also declared by {wanted[each.identity]}; "
                    "give one of them another name, or a condition"
                )
                raise StepError(path, problem)
            wanted[each.identity] = path
        return wanted

    # The decision about each object.

    async def _plan_undesired(self, each: _CandidateObject, *, is_wanted: bool) -> PlannedResource:
        policy = each.resource.apply_policy
        live = None if is_wanted or not policy.can_remove else await self._get_live(each)
        # Two entries can name one object: the object of an entry that never deletes stays.
        may_go = live is not None and is_ours(live, self._owner) and _get_entry_label(live) not in self._lasting
        seen = ObservedObject(exists=live is not None, is_ours=may_go)
        decision, why = decide_action(policy, seen, is_on=False, is_wanted=is_wanted)
        return self._build_resource(each, decision, why)

    async def _plan_object(self, each: _CandidateObject) -> PlannedResource:
        policy = each.resource.apply_policy
        if policy.timing is ApplyTiming.ALWAYS:
            decision, why = decide_action(policy, ObservedObject(), is_on=True, is_wanted=False)
            planned = self._build_resource(each, decision, why)
            if not planned.is_owned and (problem := await self._describe_foreign(each)):
                return replace(planned, problem=problem)
            return await self._render_object(each, planned)
        mark = compute_mark(self._owner, each.resource.gvk, each.key) if policy.is_marked else ""
        is_marked = mark in self._marks
        live = await self._get_live(each)
        if live is None and not is_marked:
            # Creating the object once would overwrite an existing one: only the server can confirm that it is absent.
            live = await self._get_live(each, asks_server=True)
        if live is not None and is_of_earlier_life(live, self._owner):
            # Its values are about to be replaced: no reader may use them.
            earlier = f"{each.resource.gvk.kind} {each.key} of an earlier {self._owner['kind']} {self._own_key.name}"
            planned = self._build_resource(each, ObjectAction.APPLY, "the object of an earlier owner is deleted first")
            return replace(planned, blocked=f"waiting until {earlier} is gone")
        seen = ObservedObject(
            exists=live is not None,
            is_ours=live is not None and is_ours(live, self._owner),
            is_marked=is_marked,
            renewal="" if live is None else self._find_renewal(each.resource, live),
        )
        decision, why = decide_action(policy, seen, is_on=True, is_wanted=False)
        to_mark = mark if not is_marked and (seen.is_ours or decision is ObjectAction.APPLY) else ""
        planned = replace(self._build_resource(each, decision, why), mark=to_mark)
        if decision is ObjectAction.LEAVE and live is not None and not is_marked:
            planned = replace(planned, foreign_owner=describe_other(live, self._owner))
        if decision is not ObjectAction.APPLY:
            return planned
        if each.resource.renewal_period is not None:
            self._wakes.append(self._now + each.resource.renewal_period)
        if policy.timing in (ApplyTiming.ONCE, ApplyTiming.RENEWED):
            version = "" if live is None else str(live["metadata"].get("resourceVersion") or "")
            is_renewed = policy.timing is ApplyTiming.RENEWED or live is not None
            planned = replace(planned, is_renewed=is_renewed, decided_on=version)
        return await self._render_object(each, planned, live)

    async def _describe_foreign(self, each: _CandidateObject) -> str:
        """Describe why an object outside of the owner's namespace must not be written; return "" if it may be.

        Without owner references, no server rejects a second owner, and an object with the box's label is deleted with
        the custom resource. Otherwise a user who may write one custom resource could let the box overwrite and delete
        any object that the box may write.
        """
        try:
            live = await self._get_live(each) or await self._get_live(each, asks_server=True)
        except KonvergeError as error:
            return format_error(error)
        if live is None or is_handed_over(live, self._owner):
            return ""
        existing = f"{each.resource.gvk.kind} {each.key}"
        return (
            f"{each.resource.path}: {existing} exists already, does not belong to this object, and stays unchanged. "
            f"Set the label {OWNER_UID}: {self._uid} to hand it over"
        )

    def _find_renewal(self, resource: CompiledResource, live: Object) -> str:
        """Return why the values are made again, or "" and request a reconcile for the time when they expire."""
        if resource.apply_policy.timing not in (ApplyTiming.ONCE, ApplyTiming.RENEWED):
            return ""
        if not is_ours(live, self._owner):
            return ""
        if request := find_rotation_request(live, ""):
            return f"new values: {request}"
        if resource.renewal_period is None:
            return ""
        due = compute_rotation_time(live, resource.renewal_period)
        if due is not None and due > self._now:
            self._wakes.append(due)
            return ""
        return "its values have expired"

    async def _iter_unnamed_objects(self, decided: set[_Identity]) -> AsyncIterator[tuple[int, PlannedResource]]:
        """Yield objects under names that their entry no longer declares, for example of a removed list item."""
        by_kind: dict[GroupVersionKind, dict[str, tuple[int, CompiledResource]]] = {}
        for place, group in enumerate(self._groups):
            for resource in group.resources:
                if resource.apply_policy.can_remove and not resource.has_fixed_key:
                    by_kind.setdefault(resource.gvk, {})[resource.entry] = place, resource
        for gvk, entries in by_kind.items():
            try:
                labelled = await list_owned_objects(gvk, self._owner, self._reader)
            except KindUnreachableError:
                continue  # a later reconcile finds them; the other groups continue
            for live in labelled:
                key = ObjectKey.of(live)
                identity = (*gvk.group_kind, key.namespace, key.name)
                made_by = entries.get(_get_entry_label(live))
                if made_by is None or identity in decided or not is_ours(live, self._owner):
                    continue
                place, resource = made_by
                decided.add(identity)
                candidate = _CandidateObject(place, resource, self._scope, key, False, bool(key.namespace))
                yield place, self._build_resource(candidate, ObjectAction.DELETE, "its entry no longer declares it")

    def _build_resource(self, each: _CandidateObject, decision: ObjectAction, why: str) -> PlannedResource:
        is_owned = can_own(self._owner, each.key.namespace)
        resource = each.resource
        ready_when = resource.ready_when
        return PlannedResource(
            resource.declared,
            resource.gvk,
            each.key,
            decision,
            why,
            is_owned,
            each.is_namespaced,
            find_unready=None if ready_when is None else partial(ready_when.find_unready, each.scope),
            complete=partial(_complete_readiness, each) if ready_when is not None and resource.late_paths else None,
        )

    # The rendered objects.

    async def _render_object(
        self, each: _CandidateObject, planned: PlannedResource, live: Object | None = None
    ) -> PlannedResource:
        resource = each.resource
        if resource.late_paths and any(name not in each.scope.names for name in LATE_NAMES):
            return replace(planned, complete=partial(self._complete_object, each, live))
        try:
            if waiting := resource.wait_for.find_unmet(each.scope):
                return replace(planned, blocked=waiting)
            source: Object | None = None
            source_key = resource.find_source(each.scope, self._own_key.namespace)
            if source_key is not None:
                source = await self._get_object(resource.gvk, source_key)
                if source is None:
                    return replace(planned, blocked=f"waiting for {resource.gvk.kind} {source_key}")
            obj = resource.render_object(each.scope, each.key, self._uid)
            if source is not None:
                _copy_data(source, obj)
            if resource.certificate is not None:
                obj["type"] = obj.get("type", TLS_SECRET_TYPE)
                obj.pop("stringData", None)
                obj["data"] = resource.certificate.build_data(each.scope, self._now)
        except ExpressionError as error:
            if resource.late_paths and error.absent_path and error.absent_name not in _EARLY_NAMES:
                return replace(planned, blocked=f"waiting for {error.absent_path}")
            return replace(planned, problem=format_error(error))
        except KonvergeError as error:
            return replace(planned, problem=format_error(error))
        if resource.apply_policy.timing in (ApplyTiming.ONCE, ApplyTiming.RENEWED):
            annotations = obj["metadata"].get("annotations") or {}
            stamps = build_stamps(live, "", self._now)
            obj["metadata"]["annotations"] = {**annotations, **{name: text for name, text in stamps.items() if text}}
        return replace(planned, object=obj)

    async def _complete_object(
        self, each: _CandidateObject, live: Object | None, planned: PlannedResource, names: Mapping[str, Any]
    ) -> PlannedResource:
        """Render an object with the values of earlier groups and of providers."""
        resource = each.resource
        for path in sorted(resource.late_paths):
            if path[0] not in names:
                return replace(planned, blocked=f"waiting for {path[0]}, which have no results in this reconcile")
        late = replace(each, scope=_add_late_names(each.scope, names))
        if resource.ready_when is not None:
            planned = replace(planned, find_unready=partial(resource.ready_when.find_unready, late.scope))
        return await self._render_object(late, planned, live)

    async def _get_live(self, each: _CandidateObject, *, asks_server: bool = False) -> Object | None:
        return await self._get_object(each.resource.gvk, each.key, asks_server=asks_server)

    async def _get_object(self, gvk: GroupVersionKind, key: ObjectKey, *, asks_server: bool = False) -> Object | None:
        try:
            return await self._reader.get(gvk, key, live=asks_server)
        except (NotFoundError, KindNotServedError):
            return None


async def _complete_readiness(
    each: _CandidateObject, planned: PlannedResource, names: Mapping[str, Any]
) -> PlannedResource:
    """Give the conditions of readiness of an object that is not rendered the values of earlier groups."""
    assert each.resource.ready_when is not None
    scope = _add_late_names(each.scope, names)
    return replace(planned, complete=None, find_unready=partial(each.resource.ready_when.find_unready, scope))


def _add_late_names(scope: Scope, names: Mapping[str, Any]) -> Scope:
    return scope.with_names(**{name: names.get(name, {}) for name in LATE_NAMES})


def _copy_data(source: Object, obj: Object) -> None:
    """Add the source's data and type to the object in place. Data of the object itself takes precedence."""
    is_secret = obj["kind"] == "Secret"
    for name in ("data", "binaryData"):
        copied = source.get(name)
        if isinstance(copied, dict) and copied:
            own = obj.get(name) or {}
            obj[name] = {**(to_sensitive(copied) if is_secret else copied), **own}
    if is_secret and "type" not in obj and isinstance(source.get("type"), str):
        obj["type"] = source["type"]


def _get_entry_label(live: Object) -> str:
    """Return the hash of the entry that created the object, from its label."""
    return str((live["metadata"].get("labels") or {}).get(ENTRY, ""))


async def is_namespaced_resource(resource: CompiledResource, reader: MappingReader) -> bool:
    """Tell whether the objects are namespaced. A kind that is not served counts as such: its component reports that.

    Raises:
        konverge.errors.KindUnreachableError: The server is unreachable at the moment.
        konverge.errors.KonvergeError: The cluster could not be read.
    """
    if KINDS[resource.declared.kind].gvk is not None:
        return KINDS[resource.declared.kind].namespaced
    try:
        return (await reader.mapping(resource.gvk)).namespaced
    except KindUnreachableError:
        raise
    except KindNotServedError:
        return True
