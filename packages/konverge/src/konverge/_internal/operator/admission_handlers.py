"""Admission reviews: handlers get instances of a class, and the API server gets results and patches.

The JSON object is decoded for the handler, and the handler's changes become a minimal patch. Fields of the object
outside the class stay unchanged.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, cast

from konverge._internal.component import TimeLimit, call_with_limit
from konverge._internal.crd import decode, encode, find_definition, is_plain
from konverge._internal.kube import Object, ObjectKey, is_deleting
from konverge._internal.runtime.webhooks import (
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
from konverge.errors import DecodeError, FunctionTimeoutError

__all__ = ["AdmissionHandler", "AdmissionRequest", "default_object", "format_function_name", "validate_object"]

T = TypeVar("T")

_MAX_VIOLATIONS = 10_000
_CHANGEABLE_METADATA = ("labels", "annotations", "finalizers")


class AdmissionRequest(Generic[T]):
    """The request of an admission review, for a handler.

    Args:
        cls: The class of the object.
        review: The review that the API server sent.
    """

    def __init__(self, cls: type[T], review: AdmissionReview) -> None:
        self._cls = cls
        self._review = review
        self._warnings: list[str] = []
        self._copies: dict[Literal["object", "old_object"], Object | None] = {}

    @property
    def operation(self) -> AdmissionOperation:
        """The operation: ``CREATE``, ``UPDATE`` or ``DELETE``."""
        return self._review.operation

    @property
    def key(self) -> ObjectKey:
        """The key of the object; the name is empty if the server has not generated it from ``generateName`` yet."""
        return self._review.key

    @property
    def subresource(self) -> str:
        """``status``, or empty for the object itself."""
        return self._review.subresource

    @property
    def user(self) -> UserInfo:
        """The user of the request."""
        return self._review.user

    @property
    def dry_run(self) -> bool:
        """True if the server will not store the object. A handler must have no side effects in any case."""
        return self._review.dry_run

    @property
    def object(self) -> Object:
        """The JSON of the handler's object; for a deletion, of the deleted object.

        It is read-only: a handler that modifies it fails.
        """
        return self._copy("old_object" if self.operation == "DELETE" else "object") or {}

    @property
    def old_object(self) -> Object | None:
        """The read-only JSON of the stored object; None for a creation."""
        return self._copy("old_object")

    @property
    def old(self) -> T | None:
        """The stored object; None for a creation.

        Raises:
            konverge.errors.DecodeError: The stored object does not fit the present version of the class.
        """
        stored = self._review.old_object
        return None if stored is None else decode(self._cls, _with_placeholder_name(stored, self.key))

    @property
    def options(self) -> Object:
        """The options of the operation, for example a ``DeleteOptions``."""
        return self._review.options

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings that `warn` has collected."""
        return tuple(self._warnings)

    def warn(self, text: str) -> None:
        """Add a warning for the client, regardless of the result; kubectl prints it.

        The API server truncates warnings above 4,096 characters in total.
        """
        self._warnings.append(str(text))

    def _copy(self, name: Literal["object", "old_object"]) -> Object | None:
        if name not in self._copies:
            self._copies[name] = copy.deepcopy(getattr(self._review, name))
        return self._copies[name]


@dataclass(frozen=True, slots=True)
class AdmissionHandler:
    """A handler with its operations and subresources.

    Args:
        call: The handler.
        on: The operations.
        subresources: The subresources, in addition to the object itself.
    """

    call: Callable[[Any, AdmissionRequest[Any]], Any]
    on: tuple[AdmissionOperation, ...]
    subresources: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the handler in messages."""
        return format_function_name(self.call)

    def handles(self, review: AdmissionReview) -> bool:
        """Return True if the handler is registered for the operation and subresource."""
        if review.operation not in self.on:
            return False
        return not review.subresource or review.subresource in self.subresources


async def validate_object(
    cls: type[Any], handlers: Sequence[AdmissionHandler], review: AdmissionReview, *, limit: TimeLimit | None = None
) -> AdmissionResponse:
    """Validate an object of the class, and return the violations of all handlers.

    Args:
        cls: The class.
        handlers: Its handlers for this purpose.
        review: The review.
        limit: The time limit of author code between two waits; None is without a limit.

    Raises:
        HandlerError: A handler failed or broke its contract.
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
    """Complete an object of the class with its handlers in order, and return their changes as a patch.

    Args:
        cls: The class.
        handlers: Its handlers for this purpose.
        review: The review.
        limit: The time limit of author code between two waits; None is without a limit.

    Raises:
        HandlerError: A handler failed or broke its contract.
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
    original = review.object or {}
    patch = create_json_patch(original, merge_partial_change(original, before, after))
    return AdmissionResponse(patch=tuple(patch)).with_warnings(request.warnings)


def _read_object(cls: type[Any], review: AdmissionReview) -> Any:
    obj = review.old_object if review.operation == "DELETE" else review.object
    return decode(cls, _with_placeholder_name(obj or {}, review.key))


def _with_placeholder_name(obj: Object, key: ObjectKey) -> Object:
    """Add a name to an object with ``generateName``, because a class requires one."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return obj if "name" in metadata else {**obj, "metadata": {**metadata, "name": key.name}}


def _refuse_unreadable(subject: str, error: DecodeError, request: AdmissionRequest[Any]) -> AdmissionResponse:
    """Refuse an object that does not fit its class, but admit its deletion."""
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
    """Call the handler and convert its result with `read`, which can run code of the handler too."""
    try:
        returned = call_with_limit(limit, handler.call, resource, request)
        returned = await returned if inspect.isawaitable(returned) else returned
        result = call_with_limit(limit, read, returned, handler)
        _check_untouched(request, handler)
        return result
    except (AdmissionDeniedError, HandlerError):
        raise
    except FunctionTimeoutError as error:
        raise HandlerError(f"{handler.name} did not return in time; the operator's log has its position") from error
    except Exception as error:
        # Without the text of the error: it can contain a value of the object.
        raise HandlerError(
            f"{handler.name} failed with {type(error).__name__}; the operator's log has the error"
        ) from error


def _check_returned(returned: Any, handler: AdmissionHandler) -> Any:
    # A generator has not run yet: its exceptions are those of the handler.
    return _to_list(returned) if inspect.isgenerator(returned) else returned


def _check_untouched(request: AdmissionRequest[Any], handler: AdmissionHandler) -> None:
    for name, copied in request._copies.items():
        if copied != getattr(request._review, name):
            raise HandlerError(
                f"{handler.name} changed request.{name}, which is read-only: change the object that the handler gets"
            )


def _to_list(values: Iterable[Any]) -> list[Any]:
    items: list[Any] = []
    for value in values:
        if len(items) == _MAX_VIOLATIONS:
            raise HandlerError(f"the handler returned too many violations: expected at most {_MAX_VIOLATIONS}")
        items.append(value)
    return items


def _read_violations(returned: Any, handler: AdmissionHandler) -> list[Violation]:
    if returned is None:
        return []
    # A string is an iterable of strings, and must not become one violation for each character.
    returned = [returned] if isinstance(returned, str | Violation) else returned
    if not isinstance(returned, Iterable) or isinstance(returned, bytes | Mapping):
        raise HandlerError(
            f"{handler.name} returned {type(returned).__name__}; expected None, or an iterable of str or Violation"
        )
    violations = []
    for item in _to_list(returned):
        if not isinstance(item, str | Violation):
            raise HandlerError(f"{handler.name} returned an iterable of {type(item).__name__}; expected str, Violation")
        violations.append(item if isinstance(item, Violation) else Violation("", item))
    return violations


def _check_instance(returned: Any, cls: type[Any], handler: AdmissionHandler) -> Any:
    expected: type[Any] = dict if is_plain(cls) else cls
    if not isinstance(returned, expected):
        raise HandlerError(f"{handler.name} returned {type(returned).__name__}; expected {expected.__name__} or None")
    return returned


def _encode_resource(resource: Any, handler: AdmissionHandler) -> Object:
    try:
        encoded = encode(resource)
        encode_strict_json(encoded)
        return encoded
    except Exception as error:
        raise HandlerError(
            f"{handler.name} changed the object to a value that cannot be encoded as JSON ({type(error).__name__})"
        ) from error


def _check_metadata(before: Object, after: Object, handler: AdmissionHandler) -> None:
    old, new = cast(Object, before["metadata"]), cast(Object, after["metadata"])
    changed = [name for name in sorted({*old, *new} - {*_CHANGEABLE_METADATA}) if old.get(name) != new.get(name)]
    if changed:
        raise HandlerError(
            f"{handler.name} changed metadata.{changed[0]}; in the metadata, only {', '.join(_CHANGEABLE_METADATA)} "
            "may change"
        )


def format_function_name(handler: Any) -> str:
    """Return the name of an author function for messages."""
    return str(getattr(handler, "__name__", type(handler).__name__))
