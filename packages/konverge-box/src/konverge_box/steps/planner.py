"""One pass over the groups: which objects there are to decide on, what is done with each, what is applied.

What is wanted is known from names and conditions alone, before anything is rendered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from konverge.errors import KindNotServedError, KindUnreachableError, KonvergeError, NotFoundError, format_error
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_time, parse_time
from konverge_box.expressions import ExpressionError, find_earliest_change, to_sensitive
from konverge_box.file import KINDS
from konverge_box.steps.apply_policy import ApplyTiming, ObjectAction, ObservedObject, decide_action
from konverge_box.steps.compiled_group import CompiledGroup
from konverge_box.steps.compiled_resource import CompiledResource
from konverge_box.steps.creation_marks import compute_mark, read_marks
from konverge_box.steps.errors import StepError
from konverge_box.steps.labels import ENTRY, GENERATED_AT, OWNER_UID
from konverge_box.steps.object_reader import MappingReader, list_owned_objects
from konverge_box.steps.ownership import can_own, describe_other, is_handed_over, is_of_earlier_life, is_ours
from konverge_box.steps.resource_plan import PlannedGroup, PlannedResource, ResourcePlan
from konverge_box.steps.scope import Scope
from konverge_box.steps.tls_secret import TLS_SECRET_TYPE

__all__ = ["MAX_OBJECTS", "Planner", "is_namespaced_resource"]

MAX_OBJECTS = 5000
"""So many objects may a custom resource have."""

_Identity = tuple[str, str, str, str]


@dataclass(slots=True)
class _CandidateObject:
    """An object of an entry, before it is decided on."""

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
    """One pass of `konverge_box.steps.resource_groups.Groups.plan`.

    Args:
        groups: The groups, in their order.
        scope: What the steps before have made.
        owner: The custom resource as it was read.
        reader: Reads from the caches.
        now: The time of the pass.
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
        """Decide, then render what is to be applied.

        Raises:
            konverge.errors.KonvergeError: See `konverge_box.steps.resource_groups.Groups.plan`.
        """
        candidates = [each async for each in self._iter_candidates()]
        wanted = self._find_desired(candidates)
        entries: list[list[PlannedResource]] = [[] for _ in self._groups]
        decided = set(wanted)
        for each in candidates:
            if not each.conditions_hold:
                is_first = each.identity not in decided
                if each.resource.apply_policy.can_remove:  # one that leaves it alone leaves it to the next
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

    # Which objects there are to decide on.

    async def _iter_candidates(self) -> AsyncIterator[_CandidateObject]:
        count = 0
        for place, group in enumerate(self._groups):
            for resource in group.resources:
                try:
                    is_namespaced = await is_namespaced_resource(resource, self._reader)
                except KindUnreachableError:
                    is_namespaced = True  # its component says that it cannot be reached; the other groups go on
                for turn in self._list_scopes(place, resource):
                    passes = self._on[place] and turn.holds(resource.conditions)
                    for key in self._list_keys(resource, turn, passes=passes, is_namespaced=is_namespaced):
                        count += 1
                        if count > MAX_OBJECTS:
                            problem = f"expected at most {MAX_OBJECTS} objects of one custom resource, found more"
                            raise StepError(resource.path, problem)
                        yield _CandidateObject(place, resource, turn, key, passes, is_namespaced)

    def _list_scopes(self, place: int, resource: CompiledResource) -> list[Scope]:
        try:
            return resource.repetition.list_scopes(self._scope)
        except StepError:
            if self._on[place]:
                raise
            return []  # a group that is off may be so because there is nothing to repeat for

    def _list_keys(
        self, resource: CompiledResource, turn: Scope, *, passes: bool, is_namespaced: bool
    ) -> list[ObjectKey]:
        try:
            return resource.list_keys(turn, self._own_key.namespace, namespaced=is_namespaced)
        except (ExpressionError, StepError):
            if passes:
                raise
            return []  # what does not hold may have no name either: `_iter_unnamed_objects` finds what it once made

    def _find_desired(self, candidates: Iterable[_CandidateObject]) -> dict[_Identity, str]:
        wanted: dict[_Identity, str] = {}
        for each in candidates:
            if not each.conditions_hold:
                continue
            path = each.resource.path
            if each.resource.repetition.is_loop:
                path = f"{path} (item {each.scope.names['index']})"
            if each.identity in wanted:
                what = f"{each.resource.gvk.kind} {each.key}"
                problem = f"{what} is wanted by {wanted[each.identity]}, too; give one another name, or a condition"
                raise StepError(path, problem)
            wanted[each.identity] = path
        return wanted

    # What is done with each.

    async def _plan_undesired(self, each: _CandidateObject, *, is_wanted: bool) -> PlannedResource:
        keeping = each.resource.apply_policy
        live = None if is_wanted or not keeping.can_remove else await self._get_live(each)
        # Two entries may name one object; what was made by one that never removes anything stays.
        may_go = live is not None and is_ours(live, self._owner) and _get_entry_label(live) not in self._lasting
        seen = ObservedObject(exists=live is not None, is_ours=may_go)
        decision, why = decide_action(keeping, seen, passes=False, is_wanted=is_wanted)
        return self._build_resource(each, decision, why)

    async def _plan_object(self, each: _CandidateObject) -> PlannedResource:
        keeping = each.resource.apply_policy
        if keeping.timing is ApplyTiming.ALWAYS:
            decision, why = decide_action(keeping, ObservedObject(), passes=True, is_wanted=False)
            planned = self._build_resource(each, decision, why)
            if not planned.is_owned and (problem := await self._describe_foreign(each)):
                return replace(planned, problem=problem)
            return await self._render_object(each, planned)
        mark = compute_mark(self._owner, each.resource.gvk, each.key) if keeping.is_marked else ""
        is_marked = mark in self._marks
        live = await self._get_live(each)
        if live is None and not is_marked:
            # What is made once overwrites whatever there is: no cache is to say that there is nothing.
            live = await self._get_live(each, asks_server=True)
        if live is not None and is_of_earlier_life(live, self._owner):
            # Whatever reads its values would have to do with others in a moment.
            what = f"{each.resource.gvk.kind} {each.key} of an earlier {self._owner['kind']} {self._own_key.name}"
            planned = self._build_resource(each, ObjectAction.APPLY, "that of an earlier life goes first")
            return replace(planned, blocked=f"waiting until {what} is gone")
        seen = ObservedObject(
            exists=live is not None,
            is_ours=live is not None and is_ours(live, self._owner),
            is_marked=is_marked,
            is_due=live is not None and self._is_due(each.resource, live),
        )
        decision, why = decide_action(keeping, seen, passes=True, is_wanted=False)
        to_mark = mark if not is_marked and (seen.is_ours or decision is ObjectAction.APPLY) else ""
        planned = replace(self._build_resource(each, decision, why), mark=to_mark)
        if decision is ObjectAction.LEAVE and live is not None and not is_marked:
            planned = replace(planned, foreign_owner=describe_other(live, self._owner))
        if decision is not ObjectAction.APPLY:
            return planned
        if each.resource.renewal_period is not None:
            self._wakes.append(self._now + each.resource.renewal_period)
        return await self._render_object(each, replace(planned, is_renewed=keeping.timing is ApplyTiming.RENEWED))

    async def _describe_foreign(self, each: _CandidateObject) -> str:
        """Why an object outside of the owner's reach is not to be written; empty when it may be.

        No server refuses a second owner where there are no references, and what bears our label is deleted with us: who
        may write one custom resource could have whatever the box may write overwritten, and then deleted.
        """
        try:
            live = await self._get_live(each) or await self._get_live(each, asks_server=True)
        except KonvergeError as error:
            return format_error(error)
        if live is None or is_handed_over(live, self._owner):
            return ""
        what = f"{each.resource.gvk.kind} {each.key}"
        return (
            f"{each.resource.path}: there is a {what} already that is not of this object, and stays as it is. "
            f"The label {OWNER_UID}: {self._uid} would hand it over"
        )

    def _is_due(self, resource: CompiledResource, live: Object) -> bool:
        """Tell whether the values have their age; if they do not yet, the pass is to come again then."""
        if resource.renewal_period is None or not is_ours(live, self._owner):
            return False
        metadata = live["metadata"]
        annotations = metadata.get("annotations")
        made = (annotations or {}).get(GENERATED_AT) if isinstance(annotations, dict | None) else None
        for text in (made, metadata.get("creationTimestamp")):
            with suppress(ValueError, OverflowError):  # the year 9999 is a time, too, and anybody may write it
                due = parse_time(str(text)) + resource.renewal_period
                if due > self._now:
                    self._wakes.append(due)
                return due <= self._now
        return True

    async def _iter_unnamed_objects(self, decided: set[_Identity]) -> AsyncIterator[tuple[int, PlannedResource]]:
        """Objects that an entry has made under a name that it does not give any more: of a removed element, for one."""
        by_kind: dict[GroupVersionKind, dict[str, tuple[int, CompiledResource]]] = {}
        for place, group in enumerate(self._groups):
            for resource in group.resources:
                if resource.apply_policy.can_remove and not resource.has_fixed_key:
                    by_kind.setdefault(resource.gvk, {})[resource.entry] = place, resource
        for gvk, entries in by_kind.items():
            try:
                labelled = await list_owned_objects(gvk, self._owner, self._reader)
            except KindUnreachableError:
                continue  # a later pass finds them; the other groups go on
            for live in labelled:
                key = ObjectKey.of(live)
                identity = (*gvk.group_kind, key.namespace, key.name)
                made_by = entries.get(_get_entry_label(live))
                if made_by is None or identity in decided or not is_ours(live, self._owner):
                    continue
                place, resource = made_by
                decided.add(identity)
                candidate = _CandidateObject(place, resource, self._scope, key, False, bool(key.namespace))
                yield place, self._build_resource(candidate, ObjectAction.DELETE, "its entry names it no more")

    def _build_resource(self, each: _CandidateObject, decision: ObjectAction, why: str) -> PlannedResource:
        is_owned = can_own(self._owner, each.key.namespace)
        declared = each.resource.declared
        return PlannedResource(declared, each.resource.gvk, each.key, decision, why, is_owned, each.is_namespaced)

    # What is applied.

    async def _render_object(self, each: _CandidateObject, planned: PlannedResource) -> PlannedResource:
        resource = each.resource
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
        except KonvergeError as error:
            return replace(planned, problem=format_error(error))
        if resource.apply_policy.timing in (ApplyTiming.ONCE, ApplyTiming.RENEWED):
            annotations = obj["metadata"].get("annotations") or {}
            obj["metadata"]["annotations"] = {**annotations, GENERATED_AT: format_time(self._now)}
        return replace(planned, object=obj)

    async def _get_live(self, each: _CandidateObject, *, asks_server: bool = False) -> Object | None:
        return await self._get_object(each.resource.gvk, each.key, asks_server=asks_server)

    async def _get_object(self, gvk: GroupVersionKind, key: ObjectKey, *, asks_server: bool = False) -> Object | None:
        try:
            return await self._reader.get(gvk, key, live=asks_server)
        except (NotFoundError, KindNotServedError):
            return None


def _copy_data(source: Object, obj: Object) -> None:
    """Put the source's data under the object's own, in place; its type, too, without which it would be another kind."""
    is_secret = obj["kind"] == "Secret"
    for name in ("data", "binaryData"):
        found = source.get(name)
        if isinstance(found, dict) and found:
            own = obj.get(name) or {}
            obj[name] = {**(to_sensitive(found) if is_secret else found), **own}
    if is_secret and "type" not in obj and isinstance(source.get("type"), str):
        obj["type"] = source["type"]


def _get_entry_label(live: Object) -> str:
    """The entry that has made the object, by its label."""
    return str((live["metadata"].get("labels") or {}).get(ENTRY, ""))


async def is_namespaced_resource(resource: CompiledResource, reader: MappingReader) -> bool:
    """Tell whether the objects live in a namespace; of a kind that is not served, the component will say so.

    Raises:
        konverge.errors.KindUnreachableError: Nobody can tell now.
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
