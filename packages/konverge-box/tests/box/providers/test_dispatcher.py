"""The items that a reconcile creates, deletes or keeps, and its report about them."""

from __future__ import annotations

import pytest

from konverge.errors import ConfigurationError, ConflictError
from konverge.kube import ObjectKey
from konverge_box._internal.steps import StepError
from konverge_box.providers import DispatchResult, PendingDeletion
from tests.box.providers.fake_cloud import FakeCloud, FakeCloudProvider, FakeOwner, build_pool, build_providers

pytestmark = pytest.mark.anyio

ADMIN = ObjectKey("default", "admin")


class World:
    """A cloud, its provider and an owner, with one reconcile at a time."""

    def __init__(self, items: str, spec: dict[str, object] | None = None, settings: str = "") -> None:
        self.cloud = FakeCloud()
        self.provider = FakeCloudProvider(self.cloud)
        self.pool = build_pool(self.provider)
        self.owner = FakeOwner(spec or {})
        self.settings = settings
        self.declare(items)

    def declare(self, items: str) -> None:
        self.step = build_providers(items, self.pool, self.settings)

    async def reconcile(self) -> DispatchResult:
        return await self.step.reconcile(self.owner.scope(), self.owner.read(), self.owner, self.owner)

    async def delete(self) -> DispatchResult:
        return await self.step.delete(self.owner.scope(), self.owner.read(), self.owner, self.owner)


def states(dispatched: DispatchResult) -> dict[str, str]:
    return {each["name"]: each["state"] for each in dispatched.status}


async def test_items_are_made_in_the_files_order_and_found_by_expressions() -> None:
    world = World("{kind: Machine, name: second}\n{kind: Disk, name: first}")

    done = await world.reconcile()

    assert world.provider.calls == ["reconcile Machine second", "reconcile Disk first"]
    assert done.results["cloud"]["second"]["outputs"]["id"] == "i-1"
    assert str(done.results["cloud"]["second"]["outputs"]["secret"]) == "***"
    assert [(each.type, each.status, each.message) for each in done.conditions] == [("CloudReady", "True", "2 items")]
    assert done.problems == ()


async def test_a_settled_owner_is_neither_written_nor_changed() -> None:
    world = World("{kind: Machine, name: one}")
    await world.reconcile()
    patches, writes = world.owner.patches, world.cloud.writes

    await world.reconcile()

    assert (world.owner.patches, world.cloud.writes) == (patches, writes)


async def test_an_item_is_recorded_before_the_provider_hears_of_it() -> None:
    world = World("{kind: Machine, name: one, spec: {zone: b}}")
    seen: list[object] = []
    world.provider.during = lambda request: seen.extend(world.owner.annotation())

    await world.reconcile()

    assert seen == [{"provider": "cloud", "kind": "Machine", "name": "one", "item": "one", "onDelete": "delete",
                     "identity": {"zone": "b"}}]  # fmt: skip
    assert world.owner.annotation()[0]["handle"] == "i-1"


async def test_a_list_older_than_the_servers_is_not_written_over_it() -> None:
    world = World("{kind: Machine, name: one}")
    old = world.owner.read()
    world.owner.touch()

    with pytest.raises(ConflictError):
        await world.step.reconcile(world.owner.scope(), old, world.owner, world.owner)

    assert world.provider.calls == []


async def test_an_owner_that_changes_during_a_call_is_settled_by_the_next_pass() -> None:
    world = World("{kind: Machine, name: one}")
    world.provider.during = lambda request: world.owner.touch()
    done = await world.reconcile()
    assert [each.problem for each in done.problems] == [
        "the owner has changed during the reconcile; the next reconcile records the results"
    ]
    world.provider.during = None

    assert (await world.reconcile()).problems == ()
    assert world.owner.annotation()[0]["handle"] == "i-1"
    assert len(world.cloud.things) == 1


async def test_what_was_taken_out_of_the_list_is_deleted_last_made_first() -> None:
    world = World("{kind: Machine, name: a}\n{kind: Machine, name: b}\n{kind: Machine, name: c}")
    await world.reconcile()
    world.provider.calls.clear()

    world.declare("{kind: Machine, name: a}")
    await world.reconcile()

    assert world.provider.calls == ["reconcile Machine a", "delete Machine c", "delete Machine b"]
    assert world.cloud.names() == ["Machine a"]
    assert [each["name"] for each in world.owner.annotation()] == ["a"]


async def test_a_condition_that_turns_false_deletes_and_one_that_turns_true_makes_again() -> None:
    world = World("{kind: Machine, name: one, when: [{field: spec.on, equals: true}]}", {"on": True})
    await world.reconcile()
    world.owner.stored["spec"]["on"] = False

    done = await world.reconcile()

    assert world.cloud.things == {}
    assert states(done) == {"one": "Skipped"}
    assert [each.status for each in done.conditions] == ["True"]
    world.owner.stored["spec"]["on"] = True
    await world.reconcile()
    assert world.cloud.names() == ["Machine one"]


async def test_what_is_to_be_retained_is_let_go_of() -> None:
    world = World("{kind: Disk, name: one}")
    await world.reconcile()

    await world.delete()

    assert [thing["owner"] for thing in world.cloud.things.values()] == [""]
    assert world.owner.annotation() == []


async def test_two_variants_of_one_identity_change_hands_without_a_deletion() -> None:
    variants = """
{kind: Machine, name: small, spec: {name: m, size: 1}, when: [{field: spec.big, equals: false}]}
{kind: Machine, name: large, spec: {name: m, size: 9}, when: [{field: spec.big, equals: true}]}
"""
    world = World(variants, {"big": False})
    await world.reconcile()
    world.owner.stored["spec"]["big"] = True

    await world.reconcile()

    assert "delete Machine m" not in world.provider.calls
    assert [(key, thing["size"]) for key, thing in world.cloud.things.items()] == [("i-1", 9)]


async def test_removed_elements_of_for_each_are_deleted_and_names_change_by_a_new_one() -> None:
    world = World('{kind: Machine, name: "{{ item }}", forEach: {field: spec.names}}', {"names": ["a", "b"]})
    await world.reconcile()
    world.owner.stored["spec"]["names"] = ["c", "a"]

    await world.reconcile()

    assert world.cloud.names() == ["Machine a", "Machine c"]
    assert "i-1" in world.cloud.things, "the kept item was created again"


async def test_nothing_is_removed_while_it_cannot_be_said_what_is_wanted() -> None:
    world = World('{kind: Machine, name: "{{ spec.name }}"}\n{kind: Machine, name: two}', {"name": "one"})
    await world.reconcile()
    del world.owner.stored["spec"]["name"]

    done = await world.reconcile()

    assert world.cloud.names() == ["Machine one", "Machine two"]
    assert len(done.problems) == 1
    assert "spec.name is absent" in str(done.problems[0])


@pytest.mark.slow
async def test_every_item_has_its_chance_whatever_the_others_do() -> None:
    def fail(request: object) -> None:
        if getattr(request, "name", "") != "two":
            raise OSError("no route")

    world = World("{kind: Machine, name: one}\n{kind: Machine, name: two}\n{kind: Machine, name: three}")
    world.provider.during = fail

    done = await world.reconcile()

    assert states(done) == {"one": "Failed", "two": "Ready", "three": "Failed"}
    assert [each.problem for each in done.problems] == ["OSError: no route", "OSError: no route"]
    assert (done.conditions[0].reason, done.conditions[0].message) == (
        "Failed", "Machine one: Failed, OSError: no route; Machine three: Failed, OSError: no route",
    )  # fmt: skip


async def test_what_belongs_to_somebody_else_is_neither_taken_nor_deleted() -> None:
    world = World("{kind: Machine, name: one}")
    world.cloud.create(kind="Machine", name="one", owner="foreign", token="other", size=5)

    done = await world.reconcile()
    gone = await world.delete()

    assert "is not changed" in done.problems[0].problem
    assert gone.problems == ()
    assert [thing["size"] for thing in world.cloud.things.values()] == [5]


async def test_deletion_asks_for_all_that_was_recorded_and_names_every_failure() -> None:
    world = World("{kind: Machine, name: one}\n{kind: Machine, name: two, when: [{field: spec.never, exists: true}]}")
    world.owner.stored["spec"]["never"] = 1
    await world.reconcile()
    del world.owner.stored["spec"]["never"]
    world.declare("")

    def fail(request: object) -> None:
        raise OSError("no route")

    world.provider.during = fail
    done = await world.delete()
    assert [each.problem for each in done.problems] == [
        "Machine two not removed: OSError: no route", "Machine one not removed: OSError: no route",
    ]  # fmt: skip
    assert len(world.owner.annotation()) == 2

    world.provider.during = None
    assert (await world.delete()).problems == ()
    assert world.cloud.things == {}
    assert world.owner.annotation() == []


async def test_what_is_to_be_retained_counts_as_the_owner_says_at_its_end() -> None:
    world = World('{kind: Machine, name: one, spec: {onDelete: "{{ spec.end }}"}}', {"end": "delete"})
    await world.reconcile()
    world.owner.stored["spec"]["end"] = "retain"

    await world.delete()

    assert world.cloud.names() == ["Machine one"]


async def test_a_secret_that_is_absent_blocks_its_item_alone_and_removes_nothing() -> None:
    secret = "{secretRef: {name: admin, key: password}}"
    world = World(f"{{kind: Machine, name: one, spec: {{password: {secret}}}}}\n{{kind: Disk, name: two}}")
    world.owner.secrets[ADMIN] = {"password": "first-password"}
    await world.reconcile()
    world.owner.secrets.clear()

    done = await world.reconcile()

    assert states(done) == {"one": "Blocked", "two": "Ready"}
    assert done.problems == ()
    assert done.conditions[0].message == "Machine one: Blocked, waiting for Secret default/admin"
    assert world.cloud.names() == ["Disk two", "Machine one"]


async def test_a_secret_that_rotates_reaches_the_item() -> None:
    world = World("{kind: Machine, name: one, spec: {password: {secretRef: {name: admin, key: password}}}}")
    world.owner.secrets[ADMIN] = {"password": "first-password"}
    await world.reconcile()
    world.owner.secrets[ADMIN] = {"password": "second-password"}

    await world.reconcile()

    assert [thing["password"] for thing in world.cloud.things.values()] == ["second-password"]
    assert world.owner.reads.count(ADMIN) == 2, (
        "a reconcile that does not read the Secret would not be queued by its changes"
    )


async def test_an_authors_value_that_looks_like_a_reference_reads_no_secret() -> None:
    stolen = {"secretRef": {"name": "admin", "key": "password", "namespace": "kube-system"}}
    world = World('{kind: Machine, name: one, spec: {password: "{{ spec.password }}"}}', {"password": stolen})

    done = await world.reconcile()

    assert states(done) == {"one": "Failed"}
    assert world.owner.reads == []


async def test_secrets_show_in_no_message() -> None:
    settings = "secretRefs: {password: {name: admin, key: password}}"
    world = World("{kind: Machine, name: one}", settings=settings)
    world.owner.secrets[ADMIN] = {"password": "hunter-two"}

    def fail(request: object) -> None:
        raise OSError("cannot log in with hunter-two")

    world.provider.during = fail
    done = await world.reconcile()

    output = f"{done.results}{done.status}{done.conditions}{done.problems}"
    assert "cannot log in with ***" in output
    assert "hunter-two" not in output


async def test_a_secret_where_the_kind_expects_none_is_refused() -> None:
    world = World("{kind: Machine, name: one, spec: {zone: {secretRef: {name: admin, key: password}}}}")
    world.owner.secrets[ADMIN] = {"password": "hunter-two"}

    done = await world.reconcile()

    assert "zone: expected a string, found a value from a Secret" in str(done.problems[0])
    assert world.owner.annotation() == []


async def test_two_items_of_one_name_or_of_one_identity_are_refused() -> None:
    world = World("{kind: Machine, name: one}\n{kind: Disk, name: one}\n{kind: Machine, name: x, spec: {name: one}}")

    done = await world.reconcile()

    assert [each.problem for each in done.problems] == [
        "another item has this name; set spec.name for the name outside of the cluster",
        "is the same Machine one as item one",
    ]
    assert len(world.cloud.things) == 1


async def test_more_items_than_an_owner_may_have_are_refused() -> None:
    world = World('{kind: Machine, name: "{{ item }}", forEach: {field: spec.names}}')
    world.owner.stored["spec"]["names"] = [f"m{number}" for number in range(201)]

    done = await world.reconcile()

    assert "expected at most 200 items in spec.names, found 201" in done.problems[0].problem
    assert world.cloud.things == {}


async def test_what_stands_in_the_annotation_and_is_no_record_stops_everything() -> None:
    world = World("{kind: Machine, name: one}")
    world.owner.stored["metadata"]["annotations"] = {"konverge.dev/providers": "{}"}

    with pytest.raises(ConfigurationError, match="Restore the old value"):
        await world.reconcile()


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("{kind: Machin, name: one}", r"cloud\[0\].kind: cloud has no kind Machin \(did you mean Machine\?\)"),
        ("{kind: Machine, name: one, spec: {sizes: 1}}", r"spec.sizes: no such field \(did you mean size\?\)"),
        ("{kind: Machine, name: one, spec: {size: big}}", r"spec.size: expected a whole number, found a string"),
        ("{kind: Machine, name: one, spec: {password: {secretRef: {name: a}}}}", "expected {secretRef: {name: …, key"),
    ],
)  # fmt: skip
async def test_mistakes_are_found_when_the_box_is_compiled(item: str, problem: str) -> None:
    with pytest.raises(StepError, match=problem):
        World(item)


async def test_settings_that_do_not_fit_are_found_when_the_box_is_compiled() -> None:
    with pytest.raises(
        StepError, match=r"spec.providers.cloud.settings.regio: no such field \(did you mean region\?\)"
    ):
        World("{kind: Machine, name: one}", settings="settings: {regio: x}")


async def test_an_item_that_its_service_still_deletes_is_pending_and_stays_recorded() -> None:
    world = World("{kind: Machine, name: one}\n{kind: Machine, name: two}")
    await world.reconcile()
    world.provider.slow_deletes = 2
    world.declare("{kind: Machine, name: one}")

    first = await world.reconcile()

    assert first.problems == ()
    assert states(first) == {"one": "Ready", "two": "Pending"}
    assert first.pending_deletions == ("Machine two is being deleted: i-2 shuts down",)
    (condition,) = first.conditions
    assert (condition.status, condition.reason) == ("False", "Pending")
    assert first.requeue_after is not None
    assert [each["name"] for each in world.owner.annotation()] == ["one", "two"]

    assert states(await world.reconcile()) == {"one": "Ready", "two": "Pending"}
    done = await world.reconcile()
    assert (states(done), done.pending_deletions, done.requeue_after) == ({"one": "Ready"}, (), None)
    assert [each["name"] for each in world.owner.annotation()] == ["one"]


async def test_the_deletion_of_an_owner_waits_for_its_items() -> None:
    world = World("{kind: Machine, name: one}\n{kind: Machine, name: two}")
    await world.reconcile()
    world.provider.slow_deletes = 1

    first = await world.delete()

    assert first.problems == ()
    assert first.pending_deletions == ("Machine two is being deleted: i-2 shuts down",)
    assert first.requeue_after is not None
    assert [each["name"] for each in world.owner.annotation()] == ["two"]

    done = await world.delete()
    assert (done.problems, done.pending_deletions, world.cloud.things) == ((), (), {})
    assert world.owner.annotation() == []


async def test_the_message_about_a_deletion_shows_no_secret() -> None:
    world = World("{kind: Machine, name: one}", settings="secretRefs: {password: {name: admin, key: word}}")
    world.owner.secrets[ADMIN] = {"word": "hunter2-hunter2"}
    await world.reconcile()

    async def refuse(request: object) -> PendingDeletion:
        return PendingDeletion("the password hunter2-hunter2 is in use")

    world.provider.delete = refuse  # type: ignore[method-assign]  # a service that quotes its password
    (pending,) = (await world.delete()).pending_deletions
    assert pending == "Machine one is being deleted: the password *** is in use"


async def test_a_deletion_with_another_result_counts_as_not_done() -> None:
    world = World("{kind: Machine, name: one}")
    await world.reconcile()

    async def answer(request: object) -> bool:
        return True

    world.provider.delete = answer  # type: ignore[method-assign, assignment]  # an error of a plug-in
    (problem,) = (await world.delete()).problems
    assert "expected None or a PendingDeletion, found bool" in str(problem)
    assert [each["name"] for each in world.owner.annotation()] == ["one"]
