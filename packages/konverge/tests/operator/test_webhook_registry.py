"""Handlers on classes without a server: decoding, patches, results and conversions."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from konverge._internal.operator.webhook_registry import AdmissionRequest, WebhookRegistry
from konverge._internal.runtime.webhooks import (
    AdmissionDeniedError,
    AdmissionResponse,
    AdmissionReview,
    HandlerError,
    Purpose,
    UserInfo,
    Violation,
)
from konverge._internal.runtime.webhooks.review_handler import handle_admission
from konverge.component import TimeLimit
from konverge.crd import Metadata, custom_resource, find_definition
from konverge.errors import BuildError, DecodeError
from konverge.kube import Object, ObjectKey
from konverge_cluster._internal.embedded.json_patches import apply_json_patch as applied
from tests.operator.webhook_harness import OldSiteSpec, Port, SiteSpec, build_versions, register_conversions

pytestmark = pytest.mark.anyio

KIND = build_versions("webhooks.konverge.test")
Site, OldSite = KIND.stored, KIND.old
GVK = find_definition(Site).gvk
OLD = find_definition(OldSite).gvk


def a_site(metadata: Object | None = None, **spec: Any) -> Object:
    named = {"name": "home", "namespace": "town", **(metadata or {})}
    return {"apiVersion": GVK.api_version, "kind": "Site", "metadata": named, "spec": spec}


def a_review(obj: Object | None = None, old: Object | None = None, **changes: Any) -> AdmissionReview:
    operation: Any = "DELETE" if obj is None else "CREATE" if old is None else "UPDATE"
    known: dict[str, Any] = {"key": ObjectKey("town", "home"), "user": UserInfo("ann", groups=("ops",)), **changes}
    return AdmissionReview("1", operation, GVK, "sites", object=obj, old_object=old, **known)


async def review_request(registry: WebhookRegistry, review: AdmissionReview) -> AdmissionResponse:
    (hook,) = registry.build_hooks().admission
    return await hook.review(review)


async def default_object(registry: WebhookRegistry, obj: Object) -> Object:
    verdict = await review_request(registry, a_review(obj))
    assert verdict.allowed, verdict.message
    found: Object = applied(copy.deepcopy(obj), list(verdict.patch))
    return found


@pytest.fixture
def registry() -> WebhookRegistry:
    return WebhookRegistry()


async def test_complaints_of_all_handlers_are_told_at_once(registry: WebhookRegistry) -> None:
    @registry.validates(Site)
    def one(site: Any, request: AdmissionRequest[Any]) -> Iterator[Violation]:
        request.warn("careful")
        yield Violation("spec.image", "expected a name")

    @registry.validates(Site)
    async def two(site: Any, request: AdmissionRequest[Any]) -> list[str]:
        return ["something else"]

    verdict = await review_request(registry, a_review(a_site()))

    assert verdict.message == "Site town/home is invalid: spec.image: expected a name; something else"
    assert (verdict.code, verdict.reason, verdict.warnings) == (422, "Invalid", ("careful",))


async def test_a_complaint_may_be_one_sentence(registry: WebhookRegistry) -> None:
    registry.validates(Site)(lambda site, request: "no")

    assert (await review_request(registry, a_review(a_site()))).message == "Site town/home is invalid: no"


async def test_a_handler_is_asked_only_for_what_it_wants(registry: WebhookRegistry) -> None:
    registry.validates(Site, on=("DELETE",))(lambda site, request: ["not deleted"])
    registry.validates(Site, on=("CREATE",))(lambda site, request: ["not created"])
    registry.validates(Site, on=("UPDATE",), subresources=("status",))(lambda site, request: ["not reported"])

    (hook,) = registry.build_hooks().admission
    assert hook.operations == ("CREATE", "UPDATE", "DELETE")
    assert hook.subresources == ("status",)
    assert (await hook.review(a_review(None, a_site()))).message.endswith("not deleted")
    assert (await hook.review(a_review(a_site()))).message.endswith("not created")
    assert (await hook.review(a_review(a_site(), a_site(), subresource="status"))).message.endswith("not reported")
    assert (await hook.review(a_review(a_site(), subresource="status"))).allowed


async def test_a_refusal_keeps_the_warnings(registry: WebhookRegistry) -> None:
    @registry.validates(Site)
    def check(site: Any, request: AdmissionRequest[Any]) -> None:
        request.warn("careful")
        raise AdmissionDeniedError("no", violations=[Violation("spec", "no")])

    verdict = await review_request(registry, a_review(a_site()))

    assert (verdict.code, verdict.warnings, verdict.causes[0].field) == (403, ("careful",), "spec")


async def test_what_does_not_fit_its_class_is_refused_with_the_field(registry: WebhookRegistry) -> None:
    registry.validates(Site)(lambda site, request: pytest.fail("asked"))

    verdict = await review_request(registry, a_review(a_site(ports=[{"name": "http", "port": "80"}])))

    assert verdict.message == "Site town/home is invalid: spec.ports[0].port: expected int, found str"
    assert [(cause.field, cause.message) for cause in verdict.causes] == [
        ("spec.ports[0].port", "expected int, found str")
    ]


@pytest.mark.parametrize("purpose", list(Purpose))
async def test_what_is_on_its_way_out_may_go_though_it_does_not_fit(purpose: Purpose) -> None:
    registry = WebhookRegistry()
    if purpose is Purpose.VALIDATE:
        registry.validates(Site, on=("UPDATE", "DELETE"))(lambda site, request: pytest.fail("asked"))
    else:
        registry.defaults(Site)(lambda site, request: pytest.fail("asked"))
    broken = a_site({"deletionTimestamp": "2026-01-01T00:00:00Z"}, replicas="many")

    verdict = await review_request(registry, a_review(broken, broken))

    assert verdict.allowed
    assert "was not checked: spec.replicas" in verdict.warnings[0]


async def test_an_old_object_that_does_not_fit_is_the_handlers_to_judge(registry: WebhookRegistry) -> None:
    @registry.validates(Site)
    def check(site: Any, request: AdmissionRequest[Any]) -> str | None:
        with pytest.raises(DecodeError):
            assert request.old
        assert request.old_object == a_site(replicas="many")
        return None

    assert (await review_request(registry, a_review(a_site(replicas=1), a_site(replicas="many")))).allowed


@pytest.mark.parametrize("returned", [7, b"no", {"a": "b"}, [7], [Violation("a", "b"), None]])
async def test_nonsense_is_the_handlers_mistake(registry: WebhookRegistry, returned: Any) -> None:
    @registry.validates(Site)
    def check(site: Any, request: AdmissionRequest[Any]) -> Any:
        return returned

    with pytest.raises(HandlerError, match="check returned"):
        await review_request(registry, a_review(a_site()))


async def test_complaints_without_end_are_cut_off(registry: WebhookRegistry) -> None:
    @registry.validates(Site)
    def check(site: Any, request: AdmissionRequest[Any]) -> Any:
        while True:
            yield "no"

    with pytest.raises(HandlerError, match="too many violations: expected at most 10000"):
        await review_request(registry, a_review(a_site()))


async def test_a_failure_in_a_generator_names_the_handler_and_no_value(registry: WebhookRegistry) -> None:
    @registry.validates(Site)
    def check(site: Any, request: AdmissionRequest[Any]) -> Any:
        yield "no"
        raise ValueError("hunter2")

    with pytest.raises(HandlerError) as failure:
        await review_request(registry, a_review(a_site()))

    assert str(failure.value) == "check failed with ValueError; the operator's log has the error"
    assert isinstance(failure.value.__cause__, ValueError)


async def test_a_default_is_a_patch_of_what_changed_alone(registry: WebhookRegistry) -> None:
    @registry.defaults(Site)
    def fill(site: Any, request: AdmissionRequest[Any]) -> None:
        site.spec.ports[0].port = 81
        site.metadata.annotations["a/b"] = "c"

    sent = a_site(replicas=2, ports=[{"name": "http", "port": 80, "unknown": [None, 1.5]}], zones=["b", "a"], more={})

    verdict = await review_request(registry, a_review(sent))

    assert verdict.patch == (
        {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}},
        {"op": "replace", "path": "/spec/ports/0/port", "value": 81},
    )


async def test_a_defaulter_that_changes_nothing_sends_no_patch(registry: WebhookRegistry) -> None:
    registry.defaults(Site)(lambda site, request: site)

    verdict = await review_request(registry, a_review(a_site(zones=["b", "a"], replicas=None, unknown={"deep": [1]})))

    assert verdict == AdmissionResponse()


async def test_a_default_is_the_same_the_second_time(registry: WebhookRegistry) -> None:
    @registry.defaults(Site)
    def fill(site: Any, request: AdmissionRequest[Any]) -> None:
        site.spec.image = site.spec.image or "app:1"
        site.spec.zones |= {"z", "a"}

    once = await default_object(registry, a_site(zones=["x"]))

    assert once["spec"] == {"image": "app:1", "zones": ["a", "x", "z"]}
    assert await default_object(registry, once) == once


async def test_a_defaulter_may_return_another_object(registry: WebhookRegistry) -> None:
    @registry.defaults(Site)
    async def fill(site: Any, request: AdmissionRequest[Any]) -> Any:
        return Site(site.metadata, SiteSpec(replicas=4, ports=[Port("http", 80)]))

    found = await default_object(registry, a_site({"ownerReferences": [{"uid": "1"}]}, image="old", unknown=1))

    assert found == a_site(
        {"ownerReferences": [{"uid": "1"}]}, image="", unknown=1, replicas=4, ports=[{"name": "http", "port": 80}]
    )


async def test_an_object_without_a_name_yet_can_be_defaulted(registry: WebhookRegistry) -> None:
    @registry.defaults(Site)
    def fill(site: Any, request: AdmissionRequest[Any]) -> None:
        assert site.metadata.name == ""
        site.spec.replicas = 3

    unnamed = {**a_site(), "metadata": {"generateName": "some-", "namespace": "town"}}

    verdict = await review_request(registry, a_review(unnamed, key=ObjectKey("town", "")))

    assert verdict.patch == ({"op": "add", "path": "/spec/replicas", "value": 3},)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (lambda site: "no site", "fill returned str; expected Site or None"),
        (lambda site: Site(Metadata(name="other"), site.spec), "fill changed metadata.name; in the metadata, only lab"),
        (
            lambda site: Site(site.metadata, {"replicas": object()}),
            "fill changed the object to a value that cannot be encoded as JSON",
        ),
    ],
)
async def test_what_a_defaulter_may_not_return_is_its_mistake(
    registry: WebhookRegistry, returned: Any, sentence: str
) -> None:
    @registry.defaults(Site)
    def fill(site: Any, request: AdmissionRequest[Any]) -> Any:
        return returned(site)

    with pytest.raises(HandlerError, match=sentence):
        await review_request(registry, a_review(a_site()))


def test_every_mistake_of_a_registration_is_told(registry: WebhookRegistry) -> None:
    arguments: Any = {
        "on": ("DELETE",),
        "subresources": ("scale",),
        "failure_policy": "Maybe",
        "timeout": timedelta(seconds=31),
    }

    with pytest.raises(BuildError) as mistake:
        registry.defaults(Site, **arguments)(lambda site, request: None)

    assert len(mistake.value.errors) == 4
    with pytest.raises(BuildError, match="no @custom_resource"):
        registry.validates(int)(lambda site, request: None)


def test_handlers_of_one_webhook_agree_on_its_timeout(registry: WebhookRegistry) -> None:
    registry.validates(Site)(lambda site, request: None)

    with pytest.raises(BuildError, match="expected one failure_policy and one timeout"):
        registry.validates(Site, timeout=timedelta(seconds=3))(lambda site, request: None)
    registry.defaults(Site, timeout=timedelta(seconds=3))(lambda site, request: None)


@pytest.fixture
def converter(registry: WebhookRegistry) -> Any:
    register_conversions(registry, KIND)
    (hook,) = registry.build_hooks().conversion
    return hook.convert


def an_old_site(deployment: str = "3 x app", **fields: Any) -> Object:
    return {**a_site(), "apiVersion": OLD.api_version, "spec": {"deployment": deployment}, **fields}


async def test_only_labels_and_annotations_can_change_in_a_conversion(registry: WebhookRegistry) -> None:
    @registry.converts(OldSite, Site)
    def up(old: Any) -> Any:
        labels = {**old.metadata.labels, "from": "old"}
        return Site(Metadata(name=old.metadata.name, namespace=old.metadata.namespace, labels=labels), SiteSpec())

    registry.converts(Site, OldSite)(lambda new: OldSite(new.metadata, OldSiteSpec()))
    (hook,) = registry.build_hooks().conversion
    metadata = {
        "name": "home",
        "namespace": "town",
        "uid": "7",
        "generation": 4,
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "managedFields": [{"manager": "x"}],
        "ownerReferences": [{"uid": "9"}],
    }

    found = await hook.convert(an_old_site(metadata=metadata), GVK.api_version)

    kept = {name: value for name, value in metadata.items() if name != "annotations"}
    assert found["metadata"] == {**kept, "labels": {"a": "b", "from": "old"}}


async def test_what_neither_version_knows_is_carried_over(converter: Any) -> None:
    conditions = [{"type": "Ready", "status": "True"}]
    spec = {"deployment": "3 x app", "unknown": {"deep": [1, None]}, "replicas": "of another time"}

    found = await converter(an_old_site(spec=spec, status={"conditions": conditions}), GVK.api_version)

    assert found["spec"] == {"replicas": 3, "image": "app", "ports": [], "zones": [], "unknown": {"deep": [1, None]}}
    assert found["status"] == {"url": "", "conditions": conditions}


async def test_an_object_of_the_wanted_version_comes_back_as_it_is(converter: Any) -> None:
    obj = a_site(anything="goes")

    assert await converter(obj, GVK.api_version) is obj


async def test_there_and_back_is_the_same(converter: Any) -> None:
    obj = an_old_site("7 x app:1", status={"url": "https://home", "conditions": []})

    assert await converter(await converter(obj, GVK.api_version), OLD.api_version) == obj


async def test_what_does_not_fit_its_version_is_told_with_the_field(converter: Any) -> None:
    with pytest.raises(DecodeError, match="spec.deployment: expected str, found int"):
        await converter(an_old_site(spec={"deployment": 7}), GVK.api_version)


async def test_a_version_without_a_class_is_told(converter: Any) -> None:
    with pytest.raises(HandlerError, match="no class is Site of webhooks.konverge.test/v2; expected one of .*v1,"):
        await converter(a_site(), "webhooks.konverge.test/v2")


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (lambda old: old, "up returned OldSite; expected Site"),
        (lambda old: Site(Metadata(name="other"), None), "up changed metadata.name; only labels and annotations"),
        (lambda old: 1 / 0, "up failed with ZeroDivisionError"),
        (lambda old: Site(old.metadata, {"a": object()}), "up returned a value that cannot be encoded as JSON"),
    ],
)
async def test_what_a_conversion_may_not_do_is_its_mistake(
    registry: WebhookRegistry, returned: Any, sentence: str
) -> None:
    @registry.converts(OldSite, Site)
    def up(old: Any) -> Any:
        return returned(old)

    registry.converts(Site, OldSite)(lambda new: new)
    (hook,) = registry.build_hooks().conversion

    with pytest.raises(HandlerError, match=sentence):
        await hook.convert(an_old_site(), GVK.api_version)


@dataclass
class NumberSpec:
    number: int = 0


@custom_resource(group="many.konverge.test", version="v1alpha1", kind="Number")
@dataclass
class First:
    metadata: Metadata
    spec: NumberSpec


@custom_resource(group="many.konverge.test", version="v1beta1", kind="Number")
@dataclass
class Second:
    metadata: Metadata
    spec: NumberSpec


@custom_resource(group="many.konverge.test", version="v1", kind="Number", also_serves=(First, Second))
@dataclass
class Stored:
    metadata: Metadata
    spec: NumberSpec


async def test_from_one_old_version_to_another_it_goes_through_the_stored_one(registry: WebhookRegistry) -> None:
    registry.converts(First, Stored)(lambda old: Stored(old.metadata, NumberSpec(old.spec.number + 1)))
    registry.converts(Stored, First)(lambda new: First(new.metadata, NumberSpec(new.spec.number - 1)))
    registry.converts(Second, Stored)(lambda old: Stored(old.metadata, NumberSpec(old.spec.number + 10)))

    with pytest.raises(BuildError) as mistake:
        registry.build_hooks()
    registry.converts(Stored, Second)(lambda new: Second(new.metadata, NumberSpec(new.spec.number - 10)))
    (hook,) = registry.build_hooks().conversion
    obj = {"apiVersion": "many.konverge.test/v1alpha1", "kind": "Number", "metadata": {}, "spec": {"number": 20}}
    found = await hook.convert(obj, "many.konverge.test/v1beta1")

    assert mistake.value.errors == (
        "Number: no functions lead from many.konverge.test/v1alpha1 to many.konverge.test/v1beta1",
        "Number: no functions lead from many.konverge.test/v1 to many.konverge.test/v1beta1",
    )
    assert found == {**obj, "apiVersion": "many.konverge.test/v1beta1", "spec": {"number": 11}}


async def test_typed_handlers_get_what_they_say(registry: WebhookRegistry) -> None:
    @registry.validates(Stored)
    def check(number: Stored, request: AdmissionRequest[Stored]) -> Iterable[str] | None:
        return ["negative"] if number.spec.number < 0 else None

    @registry.defaults(Stored)
    async def fill(number: Stored, request: AdmissionRequest[Stored]) -> Stored | None:
        number.spec.number += 0 if request.old is None else request.old.spec.number
        return None

    validating, defaulting = registry.build_hooks().admission
    obj: Object = {"metadata": {"name": "x"}, "spec": {"number": -1}}

    assert (await validating.review(a_review(obj))).message == "Number town/home is invalid: negative"
    assert (await defaulting.review(a_review(obj, obj))).patch[0]["value"] == -2


def test_a_version_that_is_served_needs_functions(registry: WebhookRegistry) -> None:
    registry.converts(First, Stored)(lambda old: Stored(old.metadata, old.spec))
    registry.converts(Stored, First)(lambda new: First(new.metadata, new.spec))

    with pytest.raises(BuildError, match="no functions lead from .*v1 to .*v1beta1"):
        registry.build_hooks()


def test_functions_lead_between_versions_of_one_kind(registry: WebhookRegistry) -> None:
    registry.converts(First, Stored)(lambda old: Stored(old.metadata, old.spec))

    with pytest.raises(BuildError, match="expected two versions of one kind"):
        registry.converts(First, Site)(lambda old: old)
    with pytest.raises(BuildError, match="v1alpha1 to v1 has a function already"):
        registry.converts(First, Stored)(lambda old: Stored(old.metadata, old.spec))


@pytest.mark.parametrize("value", ["\ud800", float("nan")])
async def test_a_default_without_a_form_in_json_names_its_handler(registry: WebhookRegistry, value: Any) -> None:
    @registry.defaults(Site)
    def fill(site: Any, request: AdmissionRequest[Any]) -> None:
        site.spec.image = value

    with pytest.raises(HandlerError, match="fill changed the object to a value that cannot be encoded as JSON"):
        await review_request(registry, a_review(a_site()))


@pytest.mark.parametrize("purpose", list(Purpose))
async def test_the_json_of_the_request_is_only_to_be_read(registry: WebhookRegistry, purpose: Purpose) -> None:
    def clear(site: Any, request: AdmissionRequest[Any]) -> None:
        request.object.clear()

    (registry.defaults if purpose is Purpose.DEFAULT else registry.validates)(Site)(clear)
    obj = a_site(image="a")

    with pytest.raises(HandlerError, match=r"clear changed request\.object, which is read-only"):
        await review_request(registry, a_review(obj))

    assert obj == a_site(image="a")


@dataclass
class HostSpec:
    host: Annotated[str, Meta(pattern=r"^([a-z0-9]+-?)+$")]


@custom_resource(group=GVK.group, version=GVK.version, kind="Site", plural="sites")
@dataclass
class Host:
    metadata: Metadata
    spec: HostSpec


@pytest.mark.timeout(10)
@pytest.mark.parametrize("purpose", list(Purpose))
async def test_no_pattern_is_matched_before_the_api_server_has(registry: WebhookRegistry, purpose: Purpose) -> None:
    (registry.defaults if purpose is Purpose.DEFAULT else registry.validates)(Host)(lambda host, request: None)

    assert (await review_request(registry, a_review(a_site(host="a" * 60 + "!")))).allowed


def loops(*_: object) -> Any:
    while True:
        pass


@pytest.fixture
def limit() -> Iterator[TimeLimit]:
    limit = TimeLimit(timedelta(milliseconds=50))
    yield limit
    limit.close()


def a_question(review: AdmissionReview) -> bytes:
    request = {
        "uid": review.uid,
        "kind": {"group": GVK.group, "version": GVK.version, "kind": GVK.kind},
        "resource": {"group": GVK.group, "version": GVK.version, "resource": "sites"},
        "name": review.key.name,
        "namespace": review.key.namespace,
        "operation": review.operation,
        "userInfo": {"username": "ann"},
        "object": review.object,
    }
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def yields_and_loops(site: Any, request: AdmissionRequest[Any]) -> Iterator[str]:
    yield "something"
    loops()


@pytest.mark.parametrize("handler", [loops, yields_and_loops])
@pytest.mark.parametrize("purpose", [Purpose.VALIDATE, Purpose.DEFAULT])
async def test_a_handler_that_never_returns_is_a_refusal_that_names_it(
    registry: WebhookRegistry, limit: TimeLimit, caplog: pytest.LogCaptureFixture, purpose: Purpose, handler: Any
) -> None:
    register = registry.validates if purpose is Purpose.VALIDATE else registry.defaults
    register(Site)(handler)
    (hook,) = registry.build_hooks(limit).admission

    answer = msgspec.json.decode(await handle_admission(hook, a_question(a_review(a_site())), 10.0))["response"]

    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 500, "InternalError")
    named = f"{handler.__name__} did not return in time; the operator's log has its position"
    assert answer["status"]["message"] == named
    (line,) = caplog.messages
    assert line.startswith(
        f"{hook.name}: {handler.__name__} failed for town/home (CREATE): it did not return within 0."
    )
    assert "; it was in loops (test_webhook_registry.py, line " in line


async def test_a_conversion_that_never_returns_is_a_failure_that_names_it(
    registry: WebhookRegistry, limit: TimeLimit
) -> None:
    registry.converts(OldSite, Site)(loops)
    registry.converts(Site, OldSite)(loops)
    (hook,) = registry.build_hooks(limit).conversion

    with pytest.raises(HandlerError, match="^loops did not return in time") as raised:
        await hook.convert(an_old_site(), GVK.api_version)

    assert "it was in loops (test_webhook_registry.py, line " in str(raised.value.__cause__)
