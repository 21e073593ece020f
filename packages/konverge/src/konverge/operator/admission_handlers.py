"""Answering admission reviews: handlers get instances of a class, the API server gets verdicts and patches.

Around each handler stands what JSON needs: the object is decoded, the handler's change becomes a patch of what it
changed and nothing else, and what the class does not know of an object stays in it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from konverge.component import TimeLimit, call_with_limit
from konverge.crd import decode, encode, find_definition
from konverge.errors import DecodeError, FunctionTimeoutError
from konverge.kube import Object, ObjectKey, is_deleting
from konverge.runtime.webhooks import (
    AdmissionDeniedError,
    AdmissionOperation,
    AdmissionResponse,
    AdmissionReview,
    HandlerError,
    UserInfo,
    Violation,
    create_json_patch,
    encode_strict_json,
    merge_partial_change,
)

__all__ = ["AdmissionHandler", "AdmissionRequest", "default_object", "format_function_name", "validate_object"]

T = TypeVar("T")

_MAX_VIOLATIONS = 10_000
_CHANGEABLE_METADATA = ("labels", "annotations", "finalizers")


class AdmissionRequest(Generic[T]):
    """What a handler may know of the request besides the object.

    Args:
        cls: The class of the object.
        review: What the API server asked.
    """

    def __init__(self, cls: type[T], review: AdmissionReview) -> None:
        self._cls = cls
        self._review = review
        self._warnings: list[str] = []
        self._shown: dict[Literal["object", "old_object"], Object | None] = {}

    @property
    def operation(self) -> AdmissionOperation:
        """``CREATE``, ``UPDATE`` or ``DELETE``."""
        return self._review.operation

    @property
    def key(self) -> ObjectKey:
        """The object; the name is empty while the server has yet to make one from ``generateName``."""
        return self._review.key

    @property
    def subresource(self) -> str:
        """``status``, or empty for the object itself."""
        return self._review.subresource

    @property
    def user(self) -> UserInfo:
        """Who sent the request."""
        return self._review.user

    @property
    def dry_run(self) -> bool:
        """Tell whether nothing will be stored. A handler has no side effects in any case."""
        return self._review.dry_run

    @property
    def object(self) -> Object:
        """The JSON that the handler's object was read from: for a deletion, of the object that is to go.

        It is there to be read: a handler that changes it has failed.
        """
        return self._copy("old_object" if self.operation == "DELETE" else "object") or {}

    @property
    def old_object(self) -> Object | None:
        """The JSON of the object as it is stored, to be read; None for a creation."""
        return self._copy("old_object")

    @property
    def old(self) -> T | None:
        """The object as it is stored; None for a creation.

        Raises:
            konverge.errors.DecodeError: An earlier version of the class wrote what this one cannot read.
        """
        stored = self._review.old_object
        return None if stored is None else decode(self._cls, _with_placeholder_name(stored, self.key))

    @property
    def options(self) -> Object:
        """The options of the operation, for example a ``DeleteOptions``."""
        return self._review.options

    @property
    def warnings(self) -> Sequence[str]:
        """What `warn` was told so far."""
        return tuple(self._warnings)

    def warn(self, text: str) -> None:
        """Show this to whoever sent the request, whether it is allowed or not; kubectl prints it.

        The API server cuts warnings that are longer than 4,096 characters together.
        """
        self._warnings.append(str(text))

    def _copy(self, name: Literal["object", "old_object"]) -> Object | None:
        if name not in self._shown:
            self._shown[name] = copy.deepcopy(getattr(self._review, name))
        return self._shown[name]


@dataclass(frozen=True, slots=True)
class AdmissionHandler:
    """A handler and what it is asked about.

    Args:
        call: The handler.
        on: Which operations.
        subresources: Which subresources; the object itself in any case.
    """

    call: Callable[[Any, AdmissionRequest[Any]], Any]
    on: tuple[AdmissionOperation, ...]
    subresources: tuple[str, ...]

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return format_function_name(self.call)

    def handles(self, review: AdmissionReview) -> bool:
        """Tell whether the review is its business."""
        if review.operation not in self.on:
            return False
        return not review.subresource or review.subresource in self.subresources


async def validate_object(
    cls: type[Any], handlers: Sequence[AdmissionHandler], review: AdmissionReview, *, limit: TimeLimit | None = None
) -> AdmissionResponse:
    """Judge an object of the class: the violations that the handlers find, all together.

    Args:
        cls: The class.
        handlers: Its handlers for this purpose.
        review: The question.
        limit: How long what the author wrote may take without waiting for anything; None is without a limit.

    Raises:
        HandlerError: One of them did what no handler may.
    """
    request: AdmissionRequest[Any] = AdmissionRequest(cls, review)
    subject = _format_subject(cls, review)
    try:
        resource = call_with_limit(limit, _read_object, cls, review)
    except DecodeError as error:
        return _refuse_unreadable(subject, error, request)
    violations: list[Violation] = []
    try:
        for handler in handlers:
            if handler.handles(review):
                violations += await _call_handler(handler, resource, request, limit, _read_violations)
    except AdmissionDeniedError as denied:
        return AdmissionResponse.from_denial(denied).with_warnings(request.warnings)
    verdict = AdmissionResponse.from_violations(subject, violations) if violations else AdmissionResponse()
    return verdict.with_warnings(request.warnings)


async def default_object(
    cls: type[Any], handlers: Sequence[AdmissionHandler], review: AdmissionReview, *, limit: TimeLimit | None = None
) -> AdmissionResponse:
    """Let the handlers complete an object of the class, one after the other; the patch is what they changed.

    Args:
        cls: The class.
        handlers: Its handlers for this purpose.
        review: The question.
        limit: How long what the author wrote may take without waiting for anything; None is without a limit.

    Raises:
        HandlerError: One of them did what no handler may.
    """
    request: AdmissionRequest[Any] = AdmissionRequest(cls, review)
    try:
        resource = call_with_limit(limit, _read_object, cls, review)
    except DecodeError as error:
        return _refuse_unreadable(_format_subject(cls, review), error, request)
    before = encode(resource)
    after = before
    try:
        for handler in handlers:
            if handler.handles(review):
                returned = await _call_handler(handler, resource, request, limit, _check_returned)
                resource = _check_instance(returned, cls, handler) if returned is not None else resource
                after = call_with_limit(limit, _encode_resource, resource, handler)
                _check_metadata(before, after, handler)
    except AdmissionDeniedError as denied:
        return AdmissionResponse.from_denial(denied).with_warnings(request.warnings)
    held = review.object or {}
    patch = create_json_patch(held, merge_partial_change(held, before, after))
    return AdmissionResponse(patch=tuple(patch)).with_warnings(request.warnings)


def _read_object(cls: type[Any], review: AdmissionReview) -> Any:
    found = review.old_object if review.operation == "DELETE" else review.object
    return decode(cls, _with_placeholder_name(found or {}, review.key))


def _with_placeholder_name(obj: Object, key: ObjectKey) -> Object:
    """With the name that an object with ``generateName`` does not have yet; a class always has one."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return obj if "name" in metadata else {**obj, "metadata": {**metadata, "name": key.name}}


def _refuse_unreadable(subject: str, error: DecodeError, request: AdmissionRequest[Any]) -> AdmissionResponse:
    """Refuse an object that does not fit its class, but let one go that is on its way out."""
    if request.operation == "DELETE" or is_deleting(request.object):
        return AdmissionResponse(warnings=(f"{subject} does not fit its class, and was not checked: {error.problem}",))
    problem = error.problem.removeprefix(f"{error.path}: ") if error.path else error.problem
    return AdmissionResponse.from_violations(subject, [Violation(error.path, problem)])


def _format_subject(cls: type[Any], review: AdmissionReview) -> str:
    return f"{find_definition(cls).gvk.kind} {review.key}".rstrip()


async def _call_handler(
    handler: AdmissionHandler,
    resource: Any,
    request: AdmissionRequest[Any],
    limit: TimeLimit | None,
    read: Callable[[Any, AdmissionHandler], T],
) -> T:
    """What the handler answers; `read` turns what it returned into that, which may run the handler's code too."""
    try:
        found = call_with_limit(limit, handler.call, resource, request)
        found = await found if inspect.isawaitable(found) else found
        answer = call_with_limit(limit, read, found, handler)
        _check_untouched(request, handler)
        return answer
    except (AdmissionDeniedError, HandlerError):
        raise
    except FunctionTimeoutError as error:
        raise HandlerError(f"{handler.name} did not return in time; the operator's log says where it was") from error
    except Exception as error:
        # Without the error's own text: it may hold a value of the object.
        raise HandlerError(
            f"{handler.name} failed with {type(error).__name__}; the operator's log says more"
        ) from error


def _check_returned(found: Any, handler: AdmissionHandler) -> Any:
    # A generator has not done anything yet: what it raises is the handler's.
    return _to_list(found) if inspect.isgenerator(found) else found


def _check_untouched(request: AdmissionRequest[Any], handler: AdmissionHandler) -> None:
    for name, shown in request._shown.items():
        if shown != getattr(request._review, name):
            raise HandlerError(
                f"{handler.name} changed request.{name}, which is only to be read: change the object that it was given"
            )


def _to_list(found: Iterable[Any]) -> list[Any]:
    listed: list[Any] = []
    for each in found:
        if len(listed) == _MAX_VIOLATIONS:
            raise HandlerError(f"the handler complains more than {_MAX_VIOLATIONS} times")
        listed.append(each)
    return listed


def _read_violations(found: Any, handler: AdmissionHandler) -> list[Violation]:
    if found is None:
        return []
    # A text is an iterable of texts: one complaint for each letter is not what its author means.
    found = [found] if isinstance(found, str | Violation) else found
    if not isinstance(found, Iterable) or isinstance(found, bytes | Mapping):
        raise HandlerError(
            f"{handler.name} returned {type(found).__name__}; expected None, or an iterable of str or Violation"
        )
    violations = []
    for each in _to_list(found):
        if not isinstance(each, str | Violation):
            raise HandlerError(f"{handler.name} returned an iterable of {type(each).__name__}; expected str, Violation")
        violations.append(each if isinstance(each, Violation) else Violation("", each))
    return violations


def _check_instance(returned: Any, cls: type[Any], handler: AdmissionHandler) -> Any:
    if not isinstance(returned, cls):
        raise HandlerError(f"{handler.name} returned {type(returned).__name__}; expected {cls.__name__} or None")
    return returned


def _encode_resource(resource: Any, handler: AdmissionHandler) -> Object:
    try:
        encoded = encode(resource)
        encode_strict_json(encoded)
        return encoded
    except Exception as error:
        raise HandlerError(
            f"{handler.name} made of the object what has no form in JSON ({type(error).__name__})"
        ) from error


def _check_metadata(before: Object, after: Object, handler: AdmissionHandler) -> None:
    old, new = cast(Object, before["metadata"]), cast(Object, after["metadata"])
    changed = [name for name in sorted({*old, *new} - {*_CHANGEABLE_METADATA}) if old.get(name) != new.get(name)]
    if changed:
        raise HandlerError(
            f"{handler.name} changed metadata.{changed[0]}; of the metadata, only {', '.join(_CHANGEABLE_METADATA)} "
            "may change"
        )


def format_function_name(handler: Any) -> str:
    """What a function of an author's is called in messages."""
    return str(getattr(handler, "__name__", type(handler).__name__))
