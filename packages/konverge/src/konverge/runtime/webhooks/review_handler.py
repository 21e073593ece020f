"""From the body of a webhook's request to the body of its answer: checks, asks the hook in time, never fails.

Whatever a handler does, the API server gets an answer that it can show: a handler that raises, takes too long or
returns nonsense is a refusal with a message that names it. What it raised is logged and not sent: the answer goes to
whoever made the request.
"""

from __future__ import annotations

import asyncio
import logging

from konverge.errors import BadRequestError, ConfigurationError, DecodeError, format_error
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.runtime.webhooks.hooks import AdmissionHook, ConversionHook, Purpose
from konverge.runtime.webhooks.responses import AdmissionDeniedError, AdmissionResponse
from konverge.runtime.webhooks.reviews import (
    AdmissionReview,
    ConversionReview,
    build_conversion_failure,
    build_conversion_review,
    encode_admission_response,
    parse_admission_review,
    parse_conversion_review,
)

__all__ = ["HandlerError", "handle_admission", "handle_conversion"]

_log = logging.getLogger("konverge.webhooks")


# A list of some hundred thousand small objects is one review. Functions that wait for nothing would hold up the event
# loop until the last of them.
_CONVERSION_BATCH = 50

# A CancelledError may be the handler's own, of a task that it awaited; a group may hold one.
_FAILURES = (Exception, asyncio.CancelledError, BaseExceptionGroup)
# RecursionError is a RuntimeError; UnicodeEncodeError a ValueError.
_NO_JSON = (ValueError, TypeError, RecursionError)


class HandlerError(ConfigurationError):
    """A handler broke its contract, for example by what it returned; the message holds no value of an object."""


async def handle_admission(hook: AdmissionHook, body: bytes, timeout_seconds: float) -> bytes:
    """Answer one AdmissionReview. Cancelling it cancels the handler.

    Args:
        hook: What was asked.
        body: The question.
        timeout_seconds: How long the handler may take.

    Raises:
        BadRequestError: The body is no question for this hook.
    """
    review = parse_admission_review(body)
    _check_kind(hook, review)
    verdict = await _run_handlers(hook, review, timeout_seconds)
    if verdict.patch and hook.purpose is not Purpose.DEFAULT:
        verdict = AdmissionResponse.from_failure(f"{hook.name}: a validating handler returned a patch")
    try:
        return encode_admission_response(review.uid, verdict)
    except _NO_JSON as error:
        _log.error("%s: what %s made for %s has no form in JSON", hook.name, hook.handlers, review.key, exc_info=error)
        told = f"{hook.handlers} made of the object what has no form in JSON ({type(error).__name__})"
        return encode_admission_response(review.uid, AdmissionResponse.from_failure(told))


async def handle_conversion(hook: ConversionHook, body: bytes, timeout_seconds: float) -> bytes:
    """Answer one ConversionReview: all of its objects converted, or none and why.

    Raises:
        BadRequestError: The body is no question for this hook.
    """
    review = parse_conversion_review(body)
    for place, obj in enumerate(review.objects):
        found = GroupVersionKind.of(obj)
        if found.group_kind != hook.mapping.gvk.group_kind:
            raise BadRequestError(
                f"ConversionReview: request.objects[{place}]: expected a {hook.mapping.gvk.kind} of the group "
                f"{hook.mapping.gvk.group}, found {found}"
            )
    converted: list[Object] = []
    deadline = asyncio.timeout(timeout_seconds)
    try:
        async with deadline:
            for place, obj in enumerate(review.objects):
                converted.append(await hook.convert(obj, review.desired_api_version))
                if place % _CONVERSION_BATCH == 0:
                    await asyncio.sleep(0)  # noqa: TID251  # no time passes: the loop has its turn, and the deadline
    except TimeoutError as error:
        if not deadline.expired():
            return _fail_conversion(hook, review, len(converted), error)
        told = f"converting {len(review.objects)} objects took longer than {timeout_seconds:g} s"
        return build_conversion_failure(review.uid, told)
    except _FAILURES as error:  # an author's code: the server is to hear of it, whatever it is
        if _is_being_cancelled():
            raise
        return _fail_conversion(hook, review, len(converted), error)
    try:
        return build_conversion_review(review.uid, converted)
    except _NO_JSON as error:
        _log.error("%s: a converted object has no form in JSON", hook.path, exc_info=error)
        told = f"a function returned what has no form in JSON ({type(error).__name__})"
        return build_conversion_failure(review.uid, told)


async def _run_handlers(hook: AdmissionHook, review: AdmissionReview, timeout_seconds: float) -> AdmissionResponse:
    deadline = asyncio.timeout(timeout_seconds)
    try:
        async with deadline:
            return await hook.review(review)
    except AdmissionDeniedError as denied:
        return AdmissionResponse.from_denial(denied)
    except _FAILURES as error:  # an author's code: whoever waits for the answer is to hear of it
        if _is_being_cancelled():
            raise
        if isinstance(error, TimeoutError) and deadline.expired():
            told = f"{hook.handlers} took longer than {timeout_seconds:g} s"
            return AdmissionResponse.from_failure(told, reason="Timeout", code=504)
        _log.error(
            "%s: %s failed for %s (%s): %s",
            hook.name, hook.handlers, review.key, review.operation, format_error(error.__cause__ or error),
            exc_info=error,
        )  # fmt: skip
        return AdmissionResponse.from_failure(_describe_error(hook.handlers, error))


def _is_being_cancelled() -> bool:
    """Tell whether nobody waits for the answer any more."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _fail_conversion(hook: ConversionHook, review: ConversionReview, place: int, error: BaseException) -> bytes:
    obj = review.objects[place]
    wanted = f"{obj['kind']} {ObjectKey.of(obj)} cannot be converted to {review.desired_api_version}"
    if isinstance(error, DecodeError):
        told = f"it cannot be read as {obj['apiVersion']}: {error.problem}"
    elif isinstance(error, AdmissionDeniedError):
        told = str(error)
    else:
        _log.error("%s: %s: %s", hook.path, wanted, format_error(error.__cause__ or error), exc_info=error)
        told = _describe_error("the function", error)
    return build_conversion_failure(review.uid, f"{wanted}: {told}")


def _describe_error(who: str, error: BaseException) -> str:
    """What failed, without the error's own text: it may hold a value that is nobody's business."""
    if isinstance(error, HandlerError):
        return str(error)
    return f"{who} failed with {type(error).__name__}; the operator's log says more"


def _check_kind(hook: AdmissionHook, review: AdmissionReview) -> None:
    """Refuse a question about another kind: a handler must never decode one kind as another."""
    mapping = hook.mapping
    if (review.gvk, review.plural) != (mapping.gvk, mapping.plural):
        raise BadRequestError(
            f"AdmissionReview: {hook.path} is for {mapping.gvk} ({mapping.plural}), found {review.gvk} "
            f"({review.plural})"
        )
    if review.subresource and review.subresource not in hook.subresources:
        raise BadRequestError(f"AdmissionReview: {hook.path} is not for the subresource {review.subresource}")
    if review.operation not in hook.operations:
        raise BadRequestError(f"AdmissionReview: {hook.path} is not for {review.operation}")
