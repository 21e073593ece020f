"""Random histories of a component, compared with a slow and literal model of the specification."""

from __future__ import annotations

import asyncio
import random  # noqa: TID251  # seeded: the same lives in every run
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge.component import AppliedCache, Component, ComponentBuilder, ReconcileContext
from konverge.errors import KindNotServedError, NotFoundError, ReconcileError
from konverge.guards import UNBLOCKED, blocked
from konverge.kube import Object, ObjectKey, find_condition
from konverge.options import auxiliary, block_on_absence, delete_when, ignore_if_absent, orphan_when, read_only
from konverge.prerequisites import MET, not_met
from konverge.primitives import (
    ContentMutator,
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Integration,
    Primitive,
    Static,
    Suspension,
    SuspensionStatus,
    Task,
    Workload,
)
from konverge_cluster.embedded import LocalCluster
from tests.component.app import APP, APP_CRD, CONFIG_MAP
from tests.component.literal_model import FAILURE, ModelCondition, Slot, SpecificationModel, StoredObject, WorldState

NAMESPACE = "default"
OWNER = ObjectKey(NAMESPACE, "shop")
GRACE_SECONDS = 5
LIVES = 100
CONVERGING = {
    "static": ["", ""],
    "workload": ["Healthy", "Creating", "Updating", "Scaling", "Failing", FAILURE],
    "task": ["Completed", "TaskRunning", "TaskPending", "TaskFailing", FAILURE],
    "integration": ["Operational", "OperationPending", "OperationFailing", FAILURE],
}
GRADES = ["Healthy", "Degraded", "Down"]
SUSPENSIONS = ["PendingSuspension", "Suspending", "Suspended", "Suspended", FAILURE]


# A life


@dataclass(frozen=True)
class Life:
    """A component, and what happens to it: each step is followed by a pass."""

    slots: tuple[Slot, ...]
    grace_seconds: int
    has_prerequisite: bool
    steps: tuple[tuple[str, Any], ...]


def new_life(chance: random.Random) -> Life:
    """A life by weights: one that is mostly at work, where most of the rules are, and long, because a component must
    also leave what it has entered."""
    slots = tuple(_new_slot(chance, f"r{index}") for index in range(chance.randint(1, 4)))
    steps = tuple(_new_step(chance, slots) for _ in range(40))
    return Life(slots, chance.choice([GRACE_SECONDS, GRACE_SECONDS, 0]), chance.random() < 0.5, steps)


def _new_slot(chance: random.Random, name: str) -> Slot:
    category = chance.choice(["static", "workload", "workload", "task", "integration"])
    absence = chance.choice(["", "", "", "fail", "block", "ignore"])
    return Slot(
        name,
        category,
        removal="never" if absence else chance.choice(["never", "never", "delete_when", "orphan_when"]),
        read_only=absence,
        is_auxiliary=chance.random() < 0.3,
        deletes_on_suspend=category != "static" and chance.random() < 0.5,
    )


def _new_step(chance: random.Random, slots: Sequence[Slot]) -> tuple[str, Any]:
    slot = chance.choice(slots)
    choices: dict[str, tuple[int, list[Any]]] = {
        "pass": (5, [1, GRACE_SECONDS, GRACE_SECONDS + 1]),
        "gate": (2, ["on"] * 4 + ["off", FAILURE]),
        "prerequisite": (1, [True, True, False]),
        "suspend": (2, [True, False, False, False]),
        "restart": (1, [None]),
        "block": (2, [(slot.name, blocks) for blocks in (True, False, False, False)]),
        "remove": (1, [(slot.name, removes) for removes in (True, False)]),
        "vanish": (1, [slot.name]),
        "appear": (2, [slot.name]),
        "grace": (2, [(slot.name, grade) for grade in GRADES]),
        "suspension": (2, [(slot.name, status) for status in SUSPENSIONS]),
        "converging": (9, [(slot.name, status) for status in CONVERGING[slot.category]]),
    }
    (what,) = chance.choices(list(choices), [weight for weight, _ in choices.values()])
    return what, chance.choice(choices[what][1])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, LIVES, 50))
def test_every_pass_of_every_life_leaves_what_the_specification_says(first: int) -> None:
    for seed in range(first, first + 50):
        with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
            runner.run(live(new_life(random.Random(seed)), seed))


async def live(life: Life, seed: int) -> None:
    clock = SimulatedClock()
    model = SpecificationModel(life.slots, life.grace_seconds, life.has_prerequisite)
    world = WorldState(
        converging={slot.name: CONVERGING[slot.category][1] for slot in life.slots},
        grace=dict.fromkeys((slot.name for slot in life.slots), "Down"),
        suspension=dict.fromkeys((slot.name for slot in life.slots), "Suspended"),
    )
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster:
        subject = _Subject(cluster, clock, life, world)
        await subject.start()
        start = clock.now()
        for number, step in enumerate(life.steps):
            await _take(step, world, model, subject)
            now = int((clock.now() - start).total_seconds())
            is_fine = model.reconcile(world, now)
            found, reported, facts = await subject.reconcile(start)
            label = f"seed {seed}, after step {number}, {step}, of {life}"
            assert (found, reported, facts) == (is_fine, model.reported, model.facts), label


async def _take(step: tuple[str, Any], world: WorldState, model: SpecificationModel, subject: _Subject) -> None:
    match step:
        case "gate", state:
            world.gate = state
        case "prerequisite", is_met:
            world.is_prerequisite_met = is_met
        case "suspend", is_suspended:
            world.is_suspended = is_suspended
        case "pass", seconds:
            await subject.clock.sleep(seconds)
        case "restart", _:
            subject.memory = AppliedCache()
        case "block", (name, True):
            world.blocked.add(name)
        case "block", (name, _):
            world.blocked.discard(name)
        case "remove", (name, True):
            world.removed.add(name)
        case "remove", (name, _):
            world.removed.discard(name)
        case "vanish", name:
            model.facts.pop(name, None)
            await subject.remove(name)
        case "appear", name:
            if name not in model.facts:
                model.facts[name] = StoredObject(is_owned=False, is_applied=False)
                await subject.add(name)
        case what, (name, status):
            getattr(world, what)[name] = status


# The engine's side


class _Subject:
    """The component under test, on the embedded cluster."""

    def __init__(self, cluster: LocalCluster, clock: SimulatedClock, life: Life, world: WorldState) -> None:
        self.clock = clock
        self.memory = AppliedCache()
        self._life = life
        self._world = world
        self._client = Client(cluster.transport(), user_agent="subject", clock=clock)

    async def start(self) -> None:
        await self._client.create(APP_CRD)
        owner = {
            "apiVersion": APP.api_version,
            "kind": APP.kind,
            "metadata": {"name": OWNER.name, "namespace": OWNER.namespace},
        }
        while True:
            try:
                await self._client.create(owner)
            except (KindNotServedError, NotFoundError):
                await self.clock.sleep(0.1)
            else:
                break
        await self.clock.sleep(1 - self.clock.monotonic() % 1)  # stored times are whole seconds

    async def add(self, name: str) -> None:
        await self._client.create({"apiVersion": "v1", "kind": "ConfigMap", **_config_map(name)})

    async def remove(self, name: str) -> None:
        with suppress(NotFoundError):
            await self._client.delete(CONFIG_MAP, ObjectKey(NAMESPACE, name))

    async def reconcile(self, start: Any) -> tuple[bool, ModelCondition | None, dict[str, StoredObject]]:
        owner = await self._client.get(APP, OWNER)
        ctx = ReconcileContext(client=self._client, owner=owner, clock=self.clock, applied_cache=self.memory)
        is_fine = True
        try:
            async with ctx.flushing_status():
                await self._component().reconcile(ctx)
        except ReconcileError:
            is_fine = False
        stored = await self._client.get(APP, OWNER)
        condition = find_condition(stored, "ShopReady")
        assert condition is not None
        assert condition.last_transition_time is not None

        def seconds(moment: Any) -> int:
            return int((moment - start).total_seconds())

        reported = ModelCondition(
            condition.status,
            condition.reason,
            condition.message,
            seconds(condition.last_transition_time),
            None if ctx.requeue_at is None else seconds(ctx.requeue_at),
        )
        return is_fine, reported, await self._facts(stored)

    async def _facts(self, owner: Object) -> dict[str, StoredObject]:
        found = {}
        for slot in self._life.slots:
            with suppress(NotFoundError):
                obj = await self._client.get(CONFIG_MAP, ObjectKey(NAMESPACE, slot.name))
                owners = [reference["uid"] for reference in obj["metadata"].get("ownerReferences", ())]
                managers = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
                uid = owner["metadata"]["uid"]
                found[slot.name] = StoredObject(
                    obj["data"]["suspended"] == "yes", uid in owners, f"TestApp/shop/{uid}" in managers
                )
        return found

    def _component(self) -> Component:
        world = self._world
        builder = ComponentBuilder("shop", condition_type="ShopReady").suspend(world.is_suspended)
        builder.with_feature_gate(_Gate(world)).with_grace_period(timedelta(seconds=self._life.grace_seconds))
        if self._life.has_prerequisite:
            builder.with_prerequisite(_Prerequisite(world))
        for slot in self._life.slots:
            builder.with_resource(_resource(slot, world), *_options(slot, world))
        return builder.build()


@dataclass(frozen=True)
class _Gate:
    world: WorldState

    def enabled(self) -> bool:
        if self.world.gate == FAILURE:
            raise RuntimeError("the gate is broken")
        return self.world.gate == "on"


@dataclass(frozen=True)
class _Prerequisite:
    world: WorldState

    def check(self, _: ReconcileContext) -> Any:
        return MET if self.world.is_prerequisite_met else not_met("not yet")


def _config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"suspended": "no"}}


def _options(slot: Slot, world: WorldState) -> list[Any]:
    return [
        auxiliary() if slot.is_auxiliary else None,
        read_only() if slot.read_only else None,
        block_on_absence() if slot.read_only == "block" else None,
        ignore_if_absent() if slot.read_only == "ignore" else None,
        delete_when(slot.name in world.removed) if slot.removal == "delete_when" else None,
        orphan_when(slot.name in world.removed) if slot.removal == "orphan_when" else None,
    ]


def _resource(slot: Slot, world: WorldState) -> Primitive[Any]:
    def answer(says: str) -> str:
        if says == FAILURE:
            raise RuntimeError(f"{slot.name} is broken")
        return says

    def guard(_: Object) -> Any:
        return blocked(f"{slot.name} waits") if slot.name in world.blocked else UNBLOCKED

    def converging(_: Object, __: Any) -> Convergence:
        says = answer(world.converging[slot.name])
        return Convergence(ConvergingStatus(says), f"{slot.name} {says}")

    def grace(_: Object) -> Grace:
        says = world.grace[slot.name]
        return Grace(GraceStatus(says), f"{slot.name} {says}")

    def suspension(_: Object) -> Suspension:
        says = answer(world.suspension[slot.name])
        return Suspension(SuspensionStatus(says), f"{slot.name} {says}")

    def suspend(mutator: ContentMutator) -> None:
        mutator.edit_content(lambda content: content.set_nested_field("yes", "data", "suspended"))

    obj = {"apiVersion": "v1", "kind": "ConfigMap", **_config_map(slot.name)}
    if slot.category == "static":
        return Static(obj, guard=guard)
    if slot.category == "task":
        return Task(
            obj,
            converging_status=converging,
            guard=guard,
            suspend=suspend,
            suspension_status=suspension,
            delete_on_suspend=slot.deletes_on_suspend,
        )
    graded = Workload if slot.category == "workload" else Integration
    return graded(
        obj,
        converging_status=converging,
        guard=guard,
        grace_status=grace,
        suspend=suspend,
        suspension_status=suspension,
        delete_on_suspend=slot.deletes_on_suspend,
    )
