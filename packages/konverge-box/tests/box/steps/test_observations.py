"""Cross: the observation of other objects, for which absence is a result."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.kube.selectors import LabelSelector
from konverge.errors import ConfigurationError, ForbiddenError, KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge_box._internal.file import ConditionSpec, CrossEntry, Selector
from konverge_box._internal.file.model import TimeWindow
from konverge_box._internal.steps import StepError, build_scope
from konverge_box._internal.steps.observations import MAX_OBSERVED_OBJECTS, Observations, build_observation
from konverge_box.expressions import EvaluationEnvironment, ExpressionError, Sensitive, compile_expression

pytestmark = pytest.mark.anyio

DB = GroupVersionKind("test.konverge.dev", "v1", "Db")
SECRET = GroupVersionKind("", "v1", "Secret")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
ZONE = GroupVersionKind("test.konverge.dev", "v1", "Zone")
NOW = datetime(2024, 1, 1, 9, 0, tzinfo=UTC)
KINDS = {"db": DB, "zone": ZONE}
NOTHING: dict[str, Any] = {
    "found": False,
    "name": "",
    "namespace": "",
    "labels": {},
    "annotations": {},
    "spec": {},
    "status": {},
    "items": [],
}


class Shelf:
    """A reader of objects in memory, which records its reads."""

    def __init__(
        self,
        *objects: Object,
        not_served: tuple[GroupVersionKind, ...] = (),
        error: type[KindNotServedError] = KindNotServedError,
    ) -> None:
        self._error = error
        self.objects = objects
        self.asked: list[str] = []
        self._not_served = not_served

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        if gvk in self._not_served:
            raise self._error(f"the server does not serve {gvk}")
        return RestMapping(gvk, f"{gvk.kind.lower()}s", namespaced=gvk != ZONE)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        self.asked.append(str(key))
        await self.mapping(gvk)
        for obj in self.objects:
            if GroupVersionKind.of(obj) == gvk and ObjectKey.of(obj) == key:
                return copy.deepcopy(obj)
        raise NotFoundError(f"{key} not found")

    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        self.asked.append(f"{namespace}?{labels}")
        await self.mapping(gvk)
        assert isinstance(labels, Mapping)
        selector = LabelSelector.from_labels(labels)
        return [
            copy.deepcopy(obj)
            for obj in self.objects
            if GroupVersionKind.of(obj) == gvk
            and namespace in ("", obj["metadata"].get("namespace", ""))
            and selector.matches(ObjectMeta.of(obj).labels)
        ]


def an_object(gvk: GroupVersionKind, name: str, namespace: str = "shop", **more: Any) -> Object:
    labels = more.pop("labels", None)
    metadata: dict[str, Any] = {"name": name} | ({"namespace": namespace} if namespace else {})
    if labels:
        metadata["labels"] = labels
    metadata |= more.pop("metadata", {})
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **more}


async def observe_scope(
    shelf: Shelf, *entries: CrossEntry, namespace: str = "shop", spec: Any = None
) -> dict[str, Any]:
    owner = {"metadata": {"name": "web", "namespace": namespace}, "spec": spec or {}}
    scope = build_scope(owner, EvaluationEnvironment(now=NOW))
    return await Observations(entries, "cross", KINDS).observe(scope, shelf, Shelf())


def db(name: str = "", labels: dict[str, str] | None = None, namespace: str = "", **more: Any) -> CrossEntry:
    return CrossEntry(crd="db", selector=Selector(name=name, match_labels=labels or {}, namespace=namespace), **more)


async def test_an_object_is_found_by_a_name_that_is_a_template() -> None:
    shelf = Shelf(
        an_object(DB, "web-db", labels={"a": "b"}, metadata={"annotations": {"c": "d"}}, spec={"e": 1}, status={"f": 2})
    )

    found = (await observe_scope(shelf, db("{{ metadata.name }}-db")))["db"]

    assert found.pop("items") == [found]
    assert found == {
        "found": True,
        "name": "web-db",
        "namespace": "shop",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "spec": {"e": 1},
        "status": {"f": 2},
    }


async def test_found_is_a_boolean_that_a_condition_and_an_expression_can_ask() -> None:
    names = {"cross": await observe_scope(Shelf(), db("web"))}

    assert compile_expression("{{ 'yes' if cross.db.found else 'no' }}", where="x").render(names) == "no"


async def test_the_namespace_is_the_owners_unless_one_is_named() -> None:
    shelf = Shelf(an_object(DB, "web", "shop"), an_object(DB, "web", "other"))
    found = await observe_scope(
        shelf,
        db("web"),
        db("web", namespace="{{ spec.where }}", as_="there"),
        db("web", namespace="{{ spec.absent | default(omit) }}", as_="omitted"),
        spec={"where": "other"},
    )

    assert {name: each["namespace"] for name, each in found.items()} == {
        "db": "shop",
        "there": "other",
        "omitted": "shop",
    }


ABSENT = {
    "absent object": (Shelf(), db("web")),
    "object in another namespace": (Shelf(an_object(DB, "web", "other")), db("web")),
    "kind that is not served": (Shelf(not_served=(DB,)), db("web")),
    "list of a kind that is not served": (Shelf(not_served=(DB,)), db(labels={"a": "b"})),
    "labels that none has": (Shelf(an_object(DB, "web")), db(labels={"a": "b"})),
    "false condition": (Shelf(an_object(DB, "web")), db("web", when=(ConditionSpec(field="spec.absent"),))),
    "empty name": (Shelf(an_object(DB, "web")), db("{{ spec.absent | default('') }}")),
    "omitted name": (Shelf(an_object(DB, "web")), db("{{ omit }}")),
    "name that leads elsewhere": (Shelf(an_object(DB, "web")), db("../secrets/token")),
    "namespace that leads elsewhere": (Shelf(an_object(DB, "web")), db("web", namespace="..")),
}


@pytest.mark.parametrize("case", ABSENT)
@pytest.mark.parametrize("strategy", ["first", "all"])
async def test_what_is_not_there_is_found_false_and_no_error(case: str, strategy: str) -> None:
    shelf, entry = ABSENT[case]
    entry = CrossEntry(
        crd=entry.crd,
        selector=entry.selector,
        when=entry.when,
        strategy="all" if strategy == "all" else "first",
    )

    assert (await observe_scope(shelf, entry))["db"] == NOTHING


@pytest.mark.parametrize("name", ["", "../secrets/token", "a%2fb", ".", ".."])
async def test_a_name_that_no_object_can_have_is_not_asked_for(name: str) -> None:
    shelf = Shelf()

    await observe_scope(shelf, db("{{ spec.name }}"), spec={"name": name})

    assert shelf.asked == []


async def test_a_condition_that_does_not_hold_reads_nothing() -> None:
    shelf = Shelf(an_object(DB, "web"))

    await observe_scope(shelf, db("web", when=(ConditionSpec(field="spec.absent"),)))

    assert shelf.asked == []


async def test_another_failure_of_a_read_is_an_error() -> None:
    class Forbidding(Shelf):
        async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
            raise ForbiddenError("no")

    with pytest.raises(ForbiddenError):
        await observe_scope(Forbidding(), db("web"))


async def test_all_labels_have_to_match_and_they_are_templates() -> None:
    shelf = Shelf(
        an_object(DB, "a", labels={"tier": "gold"}),
        an_object(DB, "b", labels={"app": "web"}),
        an_object(DB, "c", labels={"tier": "gold", "app": "web", "more": "x"}),
    )

    found = await observe_scope(
        shelf, db(labels={"tier": "{{ spec.tier }}", "app": "{{ metadata.name }}"}), spec={"tier": "gold"}
    )

    assert found["db"]["name"] == "c"


@given(names=st.permutations(["a", "b", "c"]), namespaces=st.permutations(["x", "y"]))
async def test_the_first_is_that_by_namespace_and_name_whatever_the_order_of_the_cache(
    names: list[str], namespaces: list[str]
) -> None:
    objects = [an_object(ZONE, name, space, labels={"a": "b"}) for space in namespaces for name in names]
    entry = CrossEntry(crd="zone", selector=Selector(match_labels={"a": "b"}), strategy="all", as_="all")

    found = await observe_scope(Shelf(*objects), CrossEntry(crd="zone", selector=entry.selector, as_="one"), entry)

    assert (found["one"]["namespace"], found["one"]["name"]) == ("x", "a")
    assert len(found["one"]["items"]) == 1
    order = [(item["namespace"], item["name"]) for item in found["all"]["items"]]
    assert order == sorted(order)
    assert len(order) == 6


async def test_all_has_every_match_as_items_and_the_first_in_front() -> None:
    shelf = Shelf(*(an_object(DB, name, labels={"a": "b"}, spec={"n": name}) for name in "cab"))

    found = (await observe_scope(shelf, db(labels={"a": "b"}, strategy="all")))["db"]

    assert found["spec"] == {"n": "a"}
    assert [item["spec"]["n"] for item in found["items"]] == ["a", "b", "c"]
    assert all("items" not in item for item in found["items"])


async def test_more_items_than_may_be_are_an_error_and_never_half_of_them() -> None:
    shelf = Shelf(*(an_object(DB, f"n{number}", labels={"a": "b"}) for number in range(MAX_OBSERVED_OBJECTS + 1)))

    with pytest.raises(StepError, match="expected at most 1000 objects, found 1001"):
        await observe_scope(shelf, db(labels={"a": "b"}, strategy="all"))
    assert (await observe_scope(shelf, db(labels={"a": "b"})))["db"]["found"]


async def test_a_kind_without_namespaces_is_read_without_one() -> None:
    shelf = Shelf(an_object(ZONE, "eu", ""))

    found = await observe_scope(shelf, CrossEntry(crd="zone", selector=Selector(name="eu")))

    assert found["zone"]["found"]
    assert shelf.asked == ["eu"]


async def test_an_owner_without_a_namespace_has_to_name_one_for_an_object_that_is_in_one() -> None:
    shelf = Shelf(an_object(DB, "a", "x", labels={"a": "b"}))

    with pytest.raises(StepError, match=r"cross\[0\]\.selector: expected a namespace"):
        await observe_scope(shelf, db("a"), namespace="")
    assert (await observe_scope(shelf, db(labels={"a": "b"}), namespace=""))["db"]["namespace"] == "x"
    assert (await observe_scope(shelf, db("a", namespace="x"), namespace=""))["db"]["found"]


async def test_entries_read_each_other_in_any_order() -> None:
    shelf = Shelf(
        an_object(DB, "one", spec={"next": "two"}),
        an_object(DB, "two", spec={"next": "three"}),
        an_object(DB, "three"),
    )

    found = await observe_scope(
        shelf,
        db("{{ cross.b.spec.next }}", as_="c", when=(ConditionSpec(field="cross.b.found", equals=True),)),
        db("{{ cross.a.spec.next }}", as_="b"),
        db("one", as_="a"),
    )

    assert {name: each["name"] for name, each in found.items()} == {"a": "one", "b": "two", "c": "three"}


async def test_an_entry_that_needs_an_absent_one_can_say_so_with_a_condition_or_a_default() -> None:
    after = (ConditionSpec(field="cross.a.found", equals=True),)

    found = await observe_scope(
        Shelf(),
        db("absent", as_="a"),
        db("{{ cross.a.spec.next }}", as_="b", when=after),
        db("{{ cross.a.spec.next | default('') }}", as_="c"),
    )

    assert [found[name]["found"] for name in "abc"] == [False, False, False]
    with pytest.raises(ExpressionError, match=r"cross\.a\.spec\.next is absent"):
        await observe_scope(Shelf(), db("absent", as_="a"), db("{{ cross.a.spec.next }}", as_="b"))


def test_entries_that_read_each_other_in_a_circle_are_refused() -> None:
    entries = (db("{{ cross.b.name }}", as_="a"), db("x", as_="b", when=(ConditionSpec(field="cross.a.found"),)))

    with pytest.raises(ConfigurationError, match=r"cross: these entries of cross read each other: \w -> \w -> \w"):
        Observations(entries, "cross", KINDS)


async def test_an_entry_that_is_not_to_wake_is_read_by_the_reader_that_wakes_nobody() -> None:
    waking, quiet = Shelf(an_object(DB, "a")), Shelf(an_object(DB, "b"))
    entries = (db("a", as_="loud"), db("b", as_="calm", wake=False))
    scope = build_scope({"metadata": {"name": "web", "namespace": "shop"}}, EvaluationEnvironment())

    found = await Observations(entries, "cross", KINDS).observe(scope, waking, quiet)

    assert [found["loud"]["found"], found["calm"]["found"]] == [True, True]
    assert (waking.asked, quiet.asked) == (["shop/a"], ["shop/b"])


@pytest.mark.parametrize("entry", [db("web"), db(labels={"a": "b"})], ids=["name", "labels"])
async def test_a_kind_that_nobody_can_tell_of_now_is_not_taken_for_absent(entry: CrossEntry) -> None:
    with pytest.raises(KindUnreachableError):
        await observe_scope(Shelf(not_served=(DB,), error=KindUnreachableError), entry)


async def test_a_kind_that_is_not_served_is_read_all_the_same_so_that_it_wakes_when_it_comes() -> None:
    shelf = Shelf(not_served=(DB,))

    await observe_scope(shelf, db("web"))

    assert shelf.asked == ["shop/web"]


def test_every_kind_that_may_be_read_is_known_beforehand_and_when_time_changes_an_entry() -> None:
    morning = ConditionSpec(time=TimeWindow(after="08:00", before="12:00"))
    step = Observations((db("a", when=(morning,)), of_a("Secret")), "cross", KINDS)

    assert step.kinds == {DB, SECRET}
    assert step.find_next_change(NOW) == datetime(2024, 1, 1, 12, 0, tzinfo=UTC)


def of_a(kind: str) -> CrossEntry:
    return CrossEntry(api_version="v1", kind=kind, as_="it", selector=Selector(name="it"))


async def test_the_data_of_a_secret_is_decoded_and_sensitive() -> None:
    data = {
        "password": base64.b64encode(b"hunter2").decode(),
        "key": base64.b64encode(b"\xff\xfe").decode(),
        "bad": "%",
    }

    found = (await observe_scope(Shelf(an_object(SECRET, "it", data=data)), of_a("Secret")))["it"]

    assert list(found["data"]) == ["password"]
    assert isinstance(found["data"]["password"], Sensitive)
    assert found["data"]["password"].reveal() == "hunter2"
    assert found["items"][0]["data"] == found["data"]
    assert "hunter2" not in repr(found)


async def test_what_kubectl_notes_in_a_secret_is_sensitive_too() -> None:
    noted = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "a": "b"}

    found = (await observe_scope(Shelf(an_object(SECRET, "it", metadata={"annotations": noted})), of_a("Secret")))["it"]

    assert "hunter2" not in repr(found)
    assert found["annotations"]["a"] == "b"


async def test_the_data_of_a_config_map_is_plain() -> None:
    found = (await observe_scope(Shelf(an_object(CONFIG_MAP, "it", data={"a": "b"})), of_a("ConfigMap")))["it"]

    assert found["data"] == {"a": "b"}


@pytest.mark.parametrize(("gvk", "has_data"), [(SECRET, True), (CONFIG_MAP, True), (DB, False)])
def test_what_is_absent_has_the_fields_of_what_is_there(gvk: GroupVersionKind, has_data: bool) -> None:
    assert build_observation(gvk, []).keys() == build_observation(gvk, [an_object(gvk, "a")]).keys()
    assert ("data" in build_observation(gvk, [])) is has_data


REFUSED = {
    "a name that is no text": (db("{{ spec.list }}"), r"cross\[0\]\.selector\.name: expected text, found a list"),
    "no labels left": (db(labels={"a": "{{ omit }}"}), r"matchLabels: expected a label, found none"),
    "a label that is no text": (db(labels={"a": "{{ spec.list }}"}), r"matchLabels\.a: expected text, found a list"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_looked_for_is_an_error(case: str) -> None:
    entry, problem = REFUSED[case]

    with pytest.raises(StepError, match=problem):
        await observe_scope(Shelf(), entry, spec={"list": [1]})


async def test_a_value_of_a_secret_names_nothing_that_would_show_it() -> None:
    data = {"password": base64.b64encode(b"hunter2").decode()}
    shelf = Shelf(an_object(SECRET, "it", data=data))

    with pytest.raises(StepError, match=r"\(not shown\)"):
        await observe_scope(shelf, of_a("Secret"), db("{{ cross.it.data.password }}"))
