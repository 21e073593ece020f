"""A second, slow and literal implementation of the component specification: the expected result of a reconcile.

Nothing here is taken from the engine. It is written in the order of the specification's sections and of the decisions
where the specification leaves a choice, with strings for statuses and plain mappings for objects, so that the two can
only agree by meaning the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

__all__ = ["ModelCondition", "Slot", "SpecificationModel", "StoredObject", "WorldState"]

FAILURE = "raises"

PRIORITY = {
    "Error": 20, "FeatureGateError": 20, "Down": 19, "Degraded": 18, "PendingSuspension": 17, "Suspending": 16,
    "Suspended": 15, "Disabled": 14, "Failing": 13, "OperationFailing": 12, "TaskFailing": 11, "Blocked": 10,
    "PrerequisiteNotMet": 10, "Scaling": 9, "TaskRunning": 8, "Updating": 7, "Creating": 6, "OperationPending": 5,
    "TaskPending": 4, "Healthy": 3, "Operational": 2, "Completed": 1, "Unknown": 0,
}  # fmt: skip
TRUE = {"PendingSuspension", "Suspending", "Suspended", "Disabled", "Healthy", "Operational", "Completed"}
READY = {"Healthy", "Operational", "Completed"}
JOINED_REASONS = (
    {"Creating", "OperationPending", "TaskPending"},
    {"Updating"},
    {"Scaling", "TaskRunning"},
    {"Failing", "OperationFailing", "TaskFailing"},
)
SUSPENSION = {"PendingSuspension", "Suspending", "Suspended"}
STICKY = {"Creating", "Updating", "Scaling"}
ARMS_THE_BARRIER = {"Unknown", "PrerequisiteNotMet", "Disabled", "FeatureGateError"}


@dataclass(frozen=True)
class Slot:
    """A resource as it is registered, for good."""

    name: str
    category: str = "workload"  # static, workload, task or integration
    removal: str = "never"  # delete_when or orphan_when
    read_only: str = ""  # fail, block or ignore when absent
    is_auxiliary: bool = False
    deletes_on_suspend: bool = False


@dataclass
class WorldState:
    """The facts that can change between two reconciles, by slot where they belong to one."""

    gate: str = "on"  # on, off or raises
    is_prerequisite_met: bool = True
    is_suspended: bool = False
    converging: dict[str, str] = field(default_factory=dict)
    grace: dict[str, str] = field(default_factory=dict)
    suspension: dict[str, str] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class StoredObject:
    """The object in the cluster under the name of a slot."""

    is_suspended: bool = False
    is_owned: bool = True
    is_applied: bool = True


@dataclass(frozen=True)
class ModelCondition:
    """The condition; `since` and `wake_at` in seconds."""

    status: str
    reason: str
    message: str
    since: int
    wake_at: int | None = None


class SpecificationModel:
    """The expected state of the cluster and the owner.

    Args:
        slots: The component's resources in order of registration.
        grace_seconds: Its grace period; 0 never ends.
        has_prerequisite: Tell whether it has one.
    """

    def __init__(self, slots: tuple[Slot, ...], grace_seconds: int, has_prerequisite: bool) -> None:
        self.slots = slots
        self.grace_seconds = grace_seconds
        self.has_prerequisite = has_prerequisite
        self.facts: dict[str, StoredObject] = {}
        self.reported: ModelCondition | None = None

    def reconcile(self, world: WorldState, now: int) -> bool:
        """One pass; tells whether it ends without an error."""
        earlier = self.reported
        if world.gate == FAILURE:
            self._report("FeatureGateError", "RuntimeError: the gate is broken", now)
            return False
        if world.gate == "off":
            for slot in self.slots:
                if not slot.read_only and not self._is_released(slot, world):
                    self._remove(slot)
            self._release(world)
            self._report("Disabled", "Component is disabled.", now)
            return True
        is_barred = earlier is None or earlier.reason in ARMS_THE_BARRIER
        if self.has_prerequisite and is_barred and not world.is_prerequisite_met:
            self._report("PrerequisiteNotMet", "not yet", now)
            return True
        error, verdict = self._suspend(world) if world.is_suspended else self._converge(world, earlier, now)
        if error:
            self._report("Error", error, now)
            return False
        self._report(*verdict, now)
        for slot in self.slots:
            if slot.removal == "delete_when" and slot.name in world.removed:
                self._remove(slot)
        self._release(world)
        self._request_requeue(now)
        return True

    def _is_managed(self, slot: Slot, world: WorldState) -> bool:
        return not slot.read_only and not (slot.removal != "never" and slot.name in world.removed)

    def _is_released(self, slot: Slot, world: WorldState) -> bool:
        return slot.removal == "orphan_when" and slot.name in world.removed

    def _remove(self, slot: Slot) -> None:
        """Remove an object of the component; one without a controller or apply entry of ours stays (decision 25)."""
        if self._is_ours(slot):
            self.facts.pop(slot.name, None)

    def _is_ours(self, slot: Slot) -> bool:
        fact = self.facts.get(slot.name)
        return fact is not None and (fact.is_owned or fact.is_applied)

    def _release(self, world: WorldState) -> None:
        for slot in self.slots:
            fact = self.facts.get(slot.name)
            if self._is_released(slot, world) and fact is not None:
                self.facts[slot.name] = replace(fact, is_owned=False)

    # Suspension

    def _suspend(self, world: WorldState) -> tuple[str, tuple[str, str]]:
        errors, results = [], []
        for slot in self.slots:
            if not self._is_managed(slot, world) or slot.category == "static":
                continue
            if slot.deletes_on_suspend and slot.name not in self.facts:
                results.append(("Suspended", "gone"))
                continue
            if slot.deletes_on_suspend and not self._is_ours(slot):
                results.append(("Suspended", "another's, which counts as gone"))
                continue
            self.facts[slot.name] = StoredObject(is_suspended=True)
            says = world.suspension[slot.name]
            if says == FAILURE:
                errors.append(f"failed to determine suspension status of resource v1/ConfigMap/default/{slot.name}: "
                              f"RuntimeError: {slot.name} is broken")  # fmt: skip
                continue
            if says == "Suspended" and slot.deletes_on_suspend:
                del self.facts[slot.name]
            results.append((says, f"{slot.name} {says}"))
        for status in ("PendingSuspension", "Suspending"):
            reasons = [reason for says, reason in results if says == status]
            if reasons:
                return "; ".join(errors), (status, "; ".join(reasons))
        return "; ".join(errors), ("Suspended", "All resources are suspended.")

    # Resources, aggregation, grace

    def _converge(self, world: WorldState, earlier: ModelCondition | None, now: int) -> tuple[str, tuple[str, str]]:
        reached: list[Slot] = []
        blocked: tuple[str, str] | None = None
        for slot in self.slots:
            if not slot.read_only and not self._is_managed(slot, world):
                continue
            if slot.name in world.blocked:
                blocked = ("Blocked", f"{slot.name} waits")
                break
            if slot.read_only:
                if slot.name not in self.facts:
                    if slot.read_only == "fail":
                        identity = f"v1/ConfigMap/default/{slot.name}"
                        return f"failed to retrieve object for resource {identity}: it does not exist", ("", "")
                    if slot.read_only == "block":
                        blocked = ("Blocked", f"waiting for v1/ConfigMap/default/{slot.name}")
                        break
                    continue
            else:
                self.facts[slot.name] = StoredObject()
            reached.append(slot)
        judged = []
        for slot in reached:
            if slot.category == "static":
                continue
            says = world.converging[slot.name]
            if says == FAILURE:
                identity = f"v1/ConfigMap/default/{slot.name}"
                return (
                    f"failed to determine converging status of resource {identity}: "
                    f"RuntimeError: {slot.name} is broken",
                    ("", ""),
                )
            if not slot.is_auxiliary:
                judged.append((says, f"{slot.name} {says}"))
        results = [*judged, *([blocked] if blocked else [])]
        if all(status in READY for status, _ in results):
            return "", (max((status for status, _ in results), key=PRIORITY.__getitem__, default="Healthy"),
                        "Component is healthy.")  # fmt: skip
        aggregate = self._most_critical(results)
        if self._is_grace_over(earlier, now):
            graded = self._grade(world, reached, blocked)
            if graded is not None:
                return "", graded
        if earlier is not None and earlier.reason in STICKY and aggregate[0] in STICKY:
            return "", (earlier.reason, aggregate[1])
        return "", aggregate

    def _most_critical(self, results: list[tuple[str, str]]) -> tuple[str, str]:
        worst = max((status for status, _ in results), key=PRIORITY.__getitem__)
        if worst == "Blocked":
            return worst, next(reason for status, reason in results if status == "Blocked")
        (together,) = (statuses for statuses in JOINED_REASONS if worst in statuses)
        return worst, "; ".join(
            # Blocked is as severe as Creating, but it wins against all of its class.
            reason
            for status, reason in results
            if status in together
        )

    def _is_grace_over(self, earlier: ModelCondition | None, now: int) -> bool:
        if self.grace_seconds == 0 or earlier is None or earlier.status != "False":
            return False
        if earlier.reason in {"FeatureGateError", "PrerequisiteNotMet"}:
            return False
        return now > earlier.since + self.grace_seconds

    def _grade(self, world: WorldState, reached: list[Slot], blocked: tuple[str, str] | None) -> tuple[str, str] | None:
        grades = [
            (world.grace[slot.name], f"{slot.name} {world.grace[slot.name]}")
            for slot in reached
            if not slot.is_auxiliary and slot.category in {"workload", "integration"}
        ]
        if blocked:
            grades.append(("Down", blocked[1]))
        if not grades:
            return "Down", "Component is down: Component failed to converge within grace period."
        for grade in ("Down", "Degraded"):
            reasons = [reason for found, reason in grades if found == grade]
            if reasons:
                return grade, f"Component is {grade.lower()}: {'; '.join(reasons)}"
        return None

    # The condition

    def _report(self, reason: str, message: str, now: int) -> None:
        earlier = self.reported
        status = "True" if reason in TRUE else "False"
        since = now
        if earlier is not None and earlier.status == status and not _is_departure(earlier.reason, reason):
            since = earlier.since
        self.reported = ModelCondition(status, reason, message, since)

    def _request_requeue(self, now: int) -> None:
        reported = self.reported
        assert reported is not None
        if self.grace_seconds == 0 or reported.status == "True":
            return
        if reported.reason in {"Degraded", "Down"} or now > reported.since + self.grace_seconds:
            return
        self.reported = replace(reported, wake_at=reported.since + self.grace_seconds + 1)


def _is_departure(left: str, for_what: str) -> bool:
    """Tell whether this leaves a state of rest, whatever comes next."""
    if left in SUSPENSION:
        return for_what not in SUSPENSION
    return left in {"Unknown", "Disabled", "FeatureGateError", "PrerequisiteNotMet"} and for_what != left
