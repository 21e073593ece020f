"""Handling of one review: it checks the body, calls the hook within its deadline, and always returns a response.

The API server gets a presentable response in any case: a handler that raises, takes too long or returns an invalid
value causes a refusal with a message that names it. The exception is logged and not sent: the client of the request
sees the response.
"""

from __future__ import annotations

import asyncio
import logging

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.runtime.webhooks.hooks import AdmissionHook, ConversionHook, Purpose
from konverge._internal.runtime.webhooks.responses import AdmissionDeniedError, AdmissionResponse
from konverge._internal.runtime.webhooks.reviews import (
    AdmissionReview,
    ConversionReview,
    build_conversion_failure,
    build_conversion_review,
    encode_admission_response,
    parse_admission_review,
    parse_conversion_review,
)
from konverge.errors import BadRequestError, ConfigurationError, DecodeError, format_error

__all__ = ["HandlerError", "handle_admission", "handle_conversion"]

_log = logging.getLogger("konverge.webhooks")


# One review may contain some hundred thousand small objects. Synchronous functions would otherwise block the event loop
# until the last of them.
_CONVERSION_BATCH = 50

# A CancelledError may come from a task that the handler awaited; a group may contain one.
_FAILURES = (Exception, asyncio.CancelledError, BaseExceptionGroup)
# RecursionError is a RuntimeError; UnicodeEncodeError a ValueError.
_NO_JSON = (ValueError, TypeError, RecursionError)


class HandlerError(ConfigurationError):
    """A handler violated its contract, for example by its result; the message contains no value of an object."""


async def handle_admission(hook: AdmissionHook, body: bytes, timeout_seconds: float) -> bytes:
    """Return the response to one AdmissionReview. Cancellation cancels the handler.

    Args:
        hook: The webhook.
        body: The body of the request.
        timeout_seconds: Time limit of the handler.

    Raises:
        BadRequestError: The body is not a review for this hook.
    """
    review = parse_admission_review(body)
    _check_kind(hook, review)
    response = await _run_handlers(hook, review, timeout_seconds)
    if response.patch and hook.purpose is not Purpose.DEFAULT:
        response = AdmissionResponse.from_failure(f"{hook.name}: a validating handler returned a patch")
    try:
        return encode_admission_response(review.uid, response)
    except _NO_JSON as error:
        _log.error(
            "%s: the result of %s for %s cannot be encoded as JSON",
            hook.name,
            hook.handlers,
            review.key,
            exc_info=error,
        )
        message = f"{hook.handlers}: the result cannot be encoded as JSON ({type(error).__name__})"
        return encode_admission_response(review.uid, AdmissionResponse.from_failure(message))


async def handle_conversion(hook: ConversionHook, body: bytes, timeout_seconds: float) -> bytes:
    """Return the response to one ConversionReview: all of its objects converted, or one failure.

    Raises:
        BadRequestError: The body is not a review for this hook.
    """
    review = parse_conversion_review(body)
    for index, obj in enumerate(review.objects):
        gvk = GroupVersionKind.of(obj)
        if gvk.group_kind != hook.mapping.gvk.group_kind:
            raise BadRequestError(
                f"ConversionReview: request.objects[{index}]: expected a {hook.mapping.gvk.kind} of the group "
                f"{hook.mapping.gvk.group}, found {gvk}"
            )
    converted: list[Object] = []
    deadline = asyncio.timeout(timeout_seconds)
    try:
        async with deadline:
            for index, obj in enumerate(review.objects):
                converted.append(await hook.convert(obj, review.desired_api_version))
                if index % _CONVERSION_BATCH == 0:
                    await asyncio.sleep(0)  # noqa: TID251  # no delay: it yields to the loop and to the deadline
    except TimeoutError as error:
        if not deadline.expired():
            return _fail_conversion(hook, review, len(converted), error)
        message = f"converting {len(review.objects)} objects took longer than {timeout_seconds:g} s"
        return build_conversion_failure(review.uid, message)
    except _FAILURES as error:  # author code: the server gets a response for every failure
        if _is_being_cancelled():
            raise
        return _fail_conversion(hook, review, len(converted), error)
    try:
        return build_conversion_review(review.uid, converted)
    except _NO_JSON as error:
        _log.error("%s: a converted object cannot be encoded as JSON", hook.path, exc_info=error)
        message = f"the result of a conversion function cannot be encoded as JSON ({type(error).__name__})"
        return build_conversion_failure(review.uid, message)


async def _run_handlers(hook: AdmissionHook, review: AdmissionReview, timeout_seconds: float) -> AdmissionResponse:
    deadline = asyncio.timeout(timeout_seconds)
    try:
        async with deadline:
            return await hook.review(review)
    except AdmissionDeniedError as denied:
        return AdmissionResponse.from_denial(denied)
    except _FAILURES as error:  # author code: the client gets a response for every failure
        if _is_being_cancelled():
            raise
        if isinstance(error, TimeoutError) and deadline.expired():
            message = f"{hook.handlers} took longer than {timeout_seconds:g} s"
            return AdmissionResponse.from_failure(message, reason="Timeout", code=504)
        _log.error(
            "%s: %s failed for %s (%s): %s",
            hook.name, hook.handlers, review.key, review.operation, format_error(error.__cause__ or error),
            exc_info=error,
        )  # fmt: skip
        return AdmissionResponse.from_failure(_describe_error(hook.handlers, error))


def _is_being_cancelled() -> bool:
    """Return whether the server cancelled the request because its client disconnected."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _fail_conversion(hook: ConversionHook, review: ConversionReview, index: int, error: BaseException) -> bytes:
    obj = review.objects[index]
    summary = f"{obj['kind']} {ObjectKey.of(obj)} cannot be converted to {review.desired_api_version}"
    if isinstance(error, DecodeError):
        cause = f"decoding as {obj['apiVersion']} failed: {error.problem}"
    elif isinstance(error, AdmissionDeniedError):
        cause = str(error)
    else:
        _log.error("%s: %s: %s", hook.path, summary, format_error(error.__cause__ or error), exc_info=error)
        cause = _describe_error("the function", error)
    return build_conversion_failure(review.uid, f"{summary}: {cause}")


def _describe_error(function: str, error: BaseException) -> str:
    """Return a description without the error's own text, which may contain a confidential value."""
    if isinstance(error, HandlerError):
        return str(error)
    return f"{function} failed with {type(error).__name__}; see the operator's log"


def _check_kind(hook: AdmissionHook, review: AdmissionReview) -> None:
    """Refuse a review of another kind: a handler must never decode one kind as another."""
    mapping = hook.mapping
    if (review.gvk, review.plural) != (mapping.gvk, mapping.plural):
        raise BadRequestError(
            f"AdmissionReview: {hook.path}: expected {mapping.gvk} ({mapping.plural}), found {review.gvk} "
            f"({review.plural})"
        )
    if review.subresource and review.subresource not in hook.subresources:
        raise BadRequestError(
            f"AdmissionReview: {hook.path}: found the subresource {review.subresource}, which is not registered"
        )
    if review.operation not in hook.operations:
        raise BadRequestError(
            f"AdmissionReview: {hook.path}: found the operation {review.operation}, which is not registered"
        )
