"""Reviews between bytes and values, and the responses for handlers that misbehave."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from konverge._internal.runtime.webhooks import (
    AdmissionDeniedError,
    AdmissionResponse,
    AdmissionReview,
    ConversionHook,
    HandlerError,
    Purpose,
    Violation,
)
from konverge._internal.runtime.webhooks.responses import limit_warnings
from konverge._internal.runtime.webhooks.review_handler import handle_admission, handle_conversion
from konverge._internal.runtime.webhooks.reviews import (
    UserInfo,
    encode_admission_response,
    parse_admission_review,
    parse_conversion_review,
)
from konverge.errors import BadRequestError
from konverge.kube import Object, ObjectKey
from tests.runtime.webhooks.sample_reviews import (
    GVK,
    MAPPING,
    build_admission_review,
    build_conversion_review,
    build_hook,
    build_web_app,
    decode_patch,
    decode_response,
    encode_review,
)

pytestmark = pytest.mark.anyio


def test_a_question_is_read_whole() -> None:
    found = parse_admission_review(encode_review(build_admission_review("UPDATE", dryRun=True, subResource="status")))

    assert found == AdmissionReview(
        uid="705ab4f5-6393-11e8-b7cc-42010a800002",
        operation="UPDATE",
        gvk=GVK,
        plural="webapps",
        subresource="status",
        key=ObjectKey("default", "web"),
        user=UserInfo("ann", "7", ("ops",), {"scopes": ("a", "b")}),
        object=build_web_app(replicas=2),
        old_object=build_web_app(replicas=1),
        dry_run=True,
        options={"kind": "CreateOptions"},
        request_gvk=GVK,
    )


def test_what_the_server_leaves_out_is_empty() -> None:
    request: Object = {
        "uid": "1",
        "kind": {"group": GVK.group, "version": "v1", "kind": "WebApp"},
        "resource": {"group": GVK.group, "version": "v1", "resource": "webapps"},
        "operation": "DELETE",
        "userInfo": {},
        "oldObject": build_web_app(),
    }

    found = parse_admission_review(encode_review({**build_admission_review(), "request": request}))

    assert (found.object, found.dry_run, found.user, found.key) == (None, False, UserInfo(), ObjectKey("", ""))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not a valid AdmissionReview: Input data was truncated"),
        (b"\xff", "not a valid AdmissionReview"),
        (b'"\xff"', "not a valid AdmissionReview"),
        (b"[" * 100_000, "not a valid AdmissionReview"),
        (b'{"request": ' + b'{"a":' * 10_000, "not a valid AdmissionReview"),
        (b"[]", "Expected `object`, got `array`"),
        (
            encode_review({**build_admission_review(), "apiVersion": "admission.k8s.io/v1beta1"}),
            "expected admission.k8s.io/v1 ",
        ),
        (
            encode_review({**build_admission_review(), "kind": "ConversionReview"}),
            "found admission.k8s.io/v1 ConversionReview",
        ),
        (
            encode_review({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
            "missing required field `request`",
        ),
        (encode_review(build_admission_review(uid="")), r"\$.request.uid"),
        (encode_review(build_admission_review("CONNECT")), "CONNECT"),
        (encode_review(build_admission_review(object=None)), "request.object: expected an object for CREATE"),
        (encode_review(build_admission_review(object=[1])), r"Expected `object \| null`, got `array`"),
        (
            encode_review(build_admission_review("UPDATE", oldObject=None)),
            "request.oldObject: expected an object for UPDATE",
        ),
        (
            encode_review(build_admission_review("DELETE", oldObject=None)),
            "request.oldObject: expected an object for DELETE",
        ),
    ],
)
def test_what_is_no_admission_review_is_a_bad_request(body: bytes, sentence: str) -> None:
    with pytest.raises(BadRequestError, match=sentence):
        parse_admission_review(body)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{", "not a valid ConversionReview"),
        (encode_review(build_admission_review()), "not a valid ConversionReview"),
        (encode_review(build_conversion_review(build_web_app(), uid=7)), "Expected `str`, got `int`"),
        (
            encode_review(build_conversion_review({"kind": "WebApp"})),
            r"objects\[0\]: expected an object with apiVersion and kind",
        ),
        (
            encode_review(build_conversion_review(build_web_app(), {**build_web_app(), "metadata": []})),
            r"objects\[1\].metadata: expected an object",
        ),
    ],
)
def test_what_is_no_conversion_review_is_a_bad_request(body: bytes, sentence: str) -> None:
    with pytest.raises(BadRequestError, match=sentence):
        parse_conversion_review(body)


def test_permission_is_the_uid_and_nothing_else() -> None:
    assert json.loads(encode_admission_response("7", AdmissionResponse())) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "7", "allowed": True},
    }


def test_a_patch_comes_with_its_type() -> None:
    operations = ({"op": "add", "path": "/metadata/labels/a~1b", "value": "ä"},)

    found = decode_response(encode_admission_response("7", AdmissionResponse(patch=operations)))

    assert found["patchType"] == "JSONPatch"
    assert decode_patch(found) == list(operations)


def test_a_refusal_names_each_mistake_as_a_cause() -> None:
    verdict = AdmissionResponse.from_violations(
        "WebApp default/web", [Violation("spec.replicas", "too many"), Violation("", "no")]
    )

    assert decode_response(encode_admission_response("7", verdict)) == {
        "uid": "7",
        "allowed": False,
        "status": {
            "status": "Failure",
            "message": "WebApp default/web is invalid: spec.replicas: too many; no",
            "reason": "Invalid",
            "code": 422,
            "details": {
                "causes": [
                    {"reason": "FieldValueInvalid", "message": "too many", "field": "spec.replicas"},
                    {"reason": "FieldValueInvalid", "message": "no", "field": ""},
                ]
            },
        },
    }


def test_a_refusal_is_bounded_however_much_is_wrong() -> None:
    verdict = AdmissionResponse.from_violations(
        "WebApp web", [Violation(f"spec.l[{place}]", "x" * 20_000) for place in range(5000)]
    )

    assert len(encode_admission_response("7", verdict)) < 1_000_000
    assert len(verdict.causes) == 100


def test_a_refusal_needs_the_status_of_a_failure() -> None:
    with pytest.raises(ValueError, match="400 to 599, found 200"):
        AdmissionDeniedError("no", code=200)


@pytest.mark.parametrize(
    ("warnings", "expected"),
    [
        (["a", "", "b", "a"], ["a", "b"]),
        (["x" * 4096], ["x" * 4096]),
        (["x" * 5000, "y" * 10], ["x" * 256, "y" * 10]),
        ([f"{place:05}" + "x" * 295 for place in range(30)], [f"{place:05}" + "x" * 251 for place in range(16)]),
    ],
)
def test_warnings_are_cut_as_the_api_server_cuts_them(warnings: list[str], expected: list[str]) -> None:
    assert limit_warnings(warnings) == expected


async def test_the_answer_has_the_uid_of_the_question() -> None:
    assert decode_response(await handle_admission(build_hook(), encode_review(build_admission_review()), 5)) == {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "allowed": True,
    }


async def test_a_handler_that_raises_is_a_refusal_with_only_the_exceptions_type(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(review: AdmissionReview) -> AdmissionResponse:
        raise KeyError("hunter2")

    with caplog.at_level(logging.ERROR, "konverge.webhooks"):
        body = await handle_admission(build_hook(fails, handlers="check"), encode_review(build_admission_review()), 5)

    status = decode_response(body)["status"]
    assert (status["code"], status["reason"]) == (500, "InternalError")
    assert status["message"] == "check failed with KeyError; see the operator's log"
    assert b"hunter2" not in body
    assert "default/web" in caplog.text


async def test_a_handler_that_hangs_is_a_refusal_in_time_and_is_cancelled() -> None:
    ended = asyncio.Event()

    async def hangs(review: AdmissionReview) -> AdmissionResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return AdmissionResponse()

    body = await handle_admission(build_hook(hangs, handlers="check"), encode_review(build_admission_review()), 9.5)

    assert decode_response(body)["status"] == {
        "status": "Failure",
        "message": "check took longer than 9.5 s",
        "reason": "Timeout",
        "code": 504,
    }
    assert ended.is_set()
    assert asyncio.get_running_loop().time() == pytest.approx(9.5)


async def test_a_handlers_own_timeout_is_its_failure() -> None:
    async def fails(review: AdmissionReview) -> AdmissionResponse:
        raise TimeoutError

    found = decode_response(await handle_admission(build_hook(fails), encode_review(build_admission_review()), 5))

    assert "failed with TimeoutError" in found["status"]["message"]


async def test_a_handler_may_refuse_with_its_own_status() -> None:
    async def refuses(review: AdmissionReview) -> AdmissionResponse:
        raise AdmissionDeniedError("out of quota", reason="TooManyRequests", code=429)

    status = decode_response(await handle_admission(build_hook(refuses), encode_review(build_admission_review()), 5))[
        "status"
    ]

    assert (status["message"], status["reason"], status["code"]) == ("out of quota", "TooManyRequests", 429)


async def test_a_validating_webhook_never_answers_with_a_patch() -> None:
    async def patches(review: AdmissionReview) -> AdmissionResponse:
        return AdmissionResponse(patch=({"op": "remove", "path": "/spec"},))

    refused = decode_response(await handle_admission(build_hook(patches), encode_review(build_admission_review()), 5))
    allowed = decode_response(
        await handle_admission(build_hook(patches, Purpose.DEFAULT), encode_review(build_admission_review()), 5)
    )

    assert not refused["allowed"]
    assert "patch" not in refused
    assert allowed["allowed"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}},
            "expected webhooks.konverge.test/v1/WebApp",
        ),
        ({"resource": {"version": "v1", "resource": "others"}}, "found webhooks.konverge.test/v1/WebApp .others"),
        ({"subResource": "scale"}, "found the subresource scale"),
        ({"operation": "DELETE", "oldObject": build_web_app()}, "found the operation DELETE"),
    ],
)
async def test_a_question_for_another_webhook_reaches_no_handler(changes: Any, sentence: str) -> None:
    async def never(review: AdmissionReview) -> AdmissionResponse:
        raise AssertionError("asked")

    with pytest.raises(BadRequestError, match=sentence):
        await handle_admission(build_hook(never), encode_review(build_admission_review(**changes)), 5)


async def renaming(obj: Object, api_version: str) -> Object:
    if obj["spec"].get("bad"):
        raise HandlerError("up returned int; expected WebApp")
    if obj["spec"].get("broken"):
        raise ValueError("hunter2")
    if obj["spec"].get("hangs"):
        await asyncio.Event().wait()
    return {**obj, "apiVersion": api_version}


CONVERSION = ConversionHook(MAPPING, renaming)


async def test_objects_are_converted_in_their_order() -> None:
    objects = [build_web_app(place=place) for place in range(20)]

    found = decode_response(
        await handle_conversion(CONVERSION, encode_review(build_conversion_review(*objects, to="x/v2")), 5)
    )

    assert found["result"] == {"status": "Success"}
    assert found["convertedObjects"] == [{**obj, "apiVersion": "x/v2"} for obj in objects]


async def test_many_objects_hold_up_nothing_else_and_not_their_deadline() -> None:
    converted = []

    async def convert(obj: Object, api_version: str) -> Object:
        converted.append(obj)
        return {**obj, "apiVersion": api_version}

    body = encode_review(build_conversion_review(*[build_web_app()] * 10_000, to="x/v2"))
    found = decode_response(await handle_conversion(ConversionHook(MAPPING, convert), body, 0))

    assert found["result"]["message"] == "converting 10000 objects took longer than 0 s"
    assert len(converted) < 1000


async def test_nothing_to_convert_is_a_success() -> None:
    assert (
        decode_response(await handle_conversion(CONVERSION, encode_review(build_conversion_review()), 5))[
            "convertedObjects"
        ]
        == []
    )


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"bad": True}, "WebApp default/web cannot be converted to x/v2: up returned int; expected WebApp"),
        ({"broken": True}, "WebApp default/web cannot be converted to x/v2: the function failed with ValueError"),
        ({"hangs": True}, "converting 2 objects took longer than 5 s"),
    ],
)
async def test_one_object_that_cannot_be_converted_fails_all(spec: Any, sentence: str) -> None:
    body = await handle_conversion(
        CONVERSION, encode_review(build_conversion_review(build_web_app(), build_web_app(**spec), to="x/v2")), 5
    )

    found = decode_response(body)
    assert found["result"]["status"] == "Failure"
    assert sentence in found["result"]["message"]
    assert "convertedObjects" not in found
    assert b"hunter2" not in body


async def test_another_kind_is_not_converted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {}}

    with pytest.raises(BadRequestError, match=r"objects\[0\]: expected a WebApp of the group webhooks.konverge.test"):
        await handle_conversion(CONVERSION, encode_review(build_conversion_review(secret)), 5)


@pytest.mark.parametrize(
    "verdict",
    [
        AdmissionResponse.from_violations("WebApp \udc00", [Violation("spec.\ud800", "\ud800 is no letter")]),
        AdmissionResponse.from_failure("\ud800"),
        AdmissionResponse(warnings=("\ud800 is no letter",)),
    ],
)
async def test_a_text_that_utf8_cannot_encode_gets_question_marks(verdict: AdmissionResponse) -> None:
    async def review(_: AdmissionReview) -> AdmissionResponse:
        return verdict

    answer = await handle_admission(build_hook(review), encode_review(build_admission_review()), 10)

    assert decode_response(answer)["allowed"] is verdict.allowed
    assert b"?" in answer


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("inf"), {1, 2}])
async def test_a_patch_that_has_no_form_in_json_is_a_refusal(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def review(_: AdmissionReview) -> AdmissionResponse:
        return AdmissionResponse(patch=({"op": "add", "path": "/spec/x", "value": value},))

    found = decode_response(
        await handle_admission(
            build_hook(review, Purpose.DEFAULT, handlers="fill"), encode_review(build_admission_review()), 10
        )
    )

    assert found["allowed"] is False
    assert "fill: the result cannot be encoded as JSON" in found["status"]["message"]
    assert "cannot be encoded as JSON" in caplog.text


@pytest.mark.parametrize("error", [asyncio.CancelledError(), BaseExceptionGroup("", [asyncio.CancelledError()])])
async def test_a_cancellation_of_the_handlers_own_is_a_refusal(error: BaseException) -> None:
    async def review(_: AdmissionReview) -> AdmissionResponse:
        raise error

    async def convert(obj: Object, api_version: str) -> Object:
        raise error

    admission = decode_response(
        await handle_admission(build_hook(review, handlers="check"), encode_review(build_admission_review()), 10)
    )
    question = encode_review(build_conversion_review(build_web_app(), to="x/v2"))
    conversion = decode_response(await handle_conversion(ConversionHook(MAPPING, convert), question, 10))

    message = f"failed with {type(error).__name__}; see the operator's log"
    assert (admission["allowed"], admission["status"]["message"]) == (False, f"check {message}")
    assert message in conversion["result"]["message"]


async def test_an_object_without_a_form_in_json_is_not_converted(caplog: pytest.LogCaptureFixture) -> None:
    async def convert(obj: Object, api_version: str) -> Object:
        return {**obj, "apiVersion": api_version, "spec": {"ratio": float("nan")}}

    question = encode_review(build_conversion_review(build_web_app(), to="x/v2"))
    found = decode_response(await handle_conversion(ConversionHook(MAPPING, convert), question, 10))

    assert found["result"]["status"] == "Failure"
    assert "cannot be encoded as JSON" in caplog.text
