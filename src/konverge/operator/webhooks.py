"""Webhooks on a custom resource's class: handlers get instances, the API server gets verdicts, patches and objects.

`WebhookRegistry` makes `konverge.runtime.webhooks.Hooks` of handlers. Around each handler stands what JSON needs: the
object is decoded, the handler's change becomes a patch of what it changed and nothing else, and what the class does not
know of an object stays in it.

A handler is a plain function or a coroutine function. A plain one runs in the event loop: it computes, and waits for
nothing.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from konverge.crd import decode, definition_of, encode
from konverge.errors import BuildError, DecodeError
from konverge.kube import Object, ObjectKey, is_deleting
from konverge.operator.conversions import Conversions
from konverge.runtime.webhooks import (
    DEFAULT_OPERATIONS,
    DEFAULT_TIMEOUT,
    AdmissionHook,
    AdmissionReview,
    Denied,
    FailurePolicy,
    HandlerError,
    Hooks,
    Operation,
    Purpose,
    UserInfo,
    Verdict,
    Violation,
    carried_over,
    json_patch,
    strict_json,
)

__all__ = ["AdmissionRequest", "Defaulter", "Validator", "WebhookRegistry"]

T = TypeVar("T")
S = TypeVar("S")

_OPERATIONS: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE")
# Of scale, the object would be a Scale: no class has that form.
_SUBRESOURCES = ("status",)
_MOST_VIOLATIONS = 10_000
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
    def operation(self) -> Operation:
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
        return None if stored is None else decode(self._cls, _named(stored, self.key))

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


Complaint: TypeAlias = str | Violation
Complaints: TypeAlias = Iterable[Complaint] | None
Validator: TypeAlias = Callable[[T, AdmissionRequest[T]], Complaints | Awaitable[Complaints]]
"""Says what is wrong with an object; nothing, None or an empty list when it is fine."""

Defaulter: TypeAlias = Callable[[T, AdmissionRequest[T]], T | Awaitable[T | None] | None]
"""Completes an object: changes it, or returns another."""


@dataclass(frozen=True, slots=True)
class _Handler:
    call: Callable[[Any, AdmissionRequest[Any]], Any]
    on: tuple[Operation, ...]
    subresources: tuple[str, ...]

    @property
    def name(self) -> str:
        return _name_of(self.call)

    def is_asked(self, review: AdmissionReview) -> bool:
        if review.operation not in self.on:
            return False
        return not review.subresource or review.subresource in self.subresources


@dataclass(slots=True)
class _Webhook:
    """The handlers of one purpose on one class, which the API server knows as one webhook."""

    purpose: Purpose
    cls: type[Any]
    failure_policy: FailurePolicy
    timeout: timedelta
    handlers: list[_Handler] = field(default_factory=list)

    def hook(self) -> AdmissionHook:
        handlers = tuple(self.handlers)
        answer = _validated if self.purpose is Purpose.VALIDATE else _defaulted
        return AdmissionHook(
            purpose=self.purpose,
            mapping=definition_of(self.cls).mapping,
            review=partial(answer, self.cls, handlers),
            operations=tuple(each for each in _OPERATIONS if any(each in handler.on for handler in handlers)),
            subresources=tuple(sorted({each for handler in handlers for each in handler.subresources})),
            failure_policy=self.failure_policy,
            timeout=self.timeout,
            handlers=", ".join(handler.name for handler in handlers),
        )


class WebhookRegistry:
    """The webhook handlers of one operator.

    ::

        @registry.validates(WebApp)
        def check(app: WebApp, request: AdmissionRequest[WebApp]) -> Iterable[Violation]:
            if app.spec.replicas > 5 and "ops" not in request.user.groups:
                yield Violation("spec.replicas", "more than 5 are for the group ops")
    """

    def __init__(self) -> None:
        self._webhooks: dict[tuple[Purpose, type[Any]], _Webhook] = {}
        self._conversions: dict[tuple[str, str], Conversions] = {}

    @property
    def classes(self) -> tuple[type[Any], ...]:
        """The classes with handlers for admission, in order."""
        return tuple(dict.fromkeys(cls for _, cls in self._webhooks))

    def validates(
        self,
        cls: type[T],
        *,
        on: Sequence[Operation] = DEFAULT_OPERATIONS,
        subresources: Sequence[str] = (),
        failure_policy: FailurePolicy = "Fail",
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> Callable[[Validator[T]], Validator[T]]:
        """Register a function that judges objects of the class before they are stored; it stays callable.

        It returns (or yields) what is wrong, as sentences or `Violation`; the request is refused with all of them. It
        may raise `konverge.runtime.webhooks.Denied` instead. An object that does not fit its class is refused before
        the function is called, unless it is being deleted already: its finalizers must come off.

        Args:
            cls: A class under `konverge.crd.custom_resource`.
            on: Which operations; for ``DELETE`` the function gets the object that is to go.
            subresources: ``status``, to be asked about writes of the status too.
            failure_policy: Whether requests are refused (``Fail``) or pass (``Ignore``) while nobody answers.
            timeout: How long the API server waits, in whole seconds, 1 to 30.

        Raises:
            BuildError: The class is no custom resource, or an argument cannot be used.
        """

        def register(handler: Validator[T]) -> Validator[T]:
            self._register(Purpose.VALIDATE, cls, handler, on, subresources, failure_policy, timeout)
            return handler

        return register

    def defaults(
        self,
        cls: type[T],
        *,
        on: Sequence[Operation] = DEFAULT_OPERATIONS,
        subresources: Sequence[str] = (),
        failure_policy: FailurePolicy = "Fail",
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> Callable[[Defaulter[T]], Defaulter[T]]:
        """Register a function that completes objects of the class before they are judged and stored.

        It changes the object that it gets, or returns another one. What it changed is sent as a patch; fields that the
        class does not know stay as they are. Of the metadata it may change labels, annotations and finalizers. It may
        be called again with its own result, and must then change nothing.

        Args:
            cls: A class under `konverge.crd.custom_resource`.
            on: Which operations; ``DELETE`` has nothing to change.
            subresources: ``status``, to be asked about writes of the status too.
            failure_policy: Whether requests are refused (``Fail``) or pass (``Ignore``) while nobody answers.
            timeout: How long the API server waits, in whole seconds, 1 to 30.

        Raises:
            BuildError: The class is no custom resource, or an argument cannot be used.
        """

        def register(handler: Defaulter[T]) -> Defaulter[T]:
            self._register(Purpose.DEFAULT, cls, handler, on, subresources, failure_policy, timeout)
            return handler

        return register

    def converts(
        self, source: type[S], target: type[T]
    ) -> Callable[[Callable[[S], T | Awaitable[T]]], Callable[[S], T | Awaitable[T]]]:
        """Register the function that turns one version of a kind into another; both are classes of their own.

        With functions from each version to the storage version and back, every version becomes every other. Only
        labels and annotations of the metadata may change; the rest of it, and what neither class knows (such as the
        status' conditions), is carried over.

        Args:
            source: The class of the version that the function gets.
            target: The class of the version that it returns.

        Raises:
            BuildError: They are not two versions of one kind, or have a function already.
        """

        def register(function: Callable[[S], T | Awaitable[T]]) -> Callable[[S], T | Awaitable[T]]:
            group_kind = definition_of(source).gvk.group_kind
            conversions = self._conversions.get(group_kind) or Conversions(definition_of(source).mapping)
            conversions.add(source, target, function, _name_of(function))
            self._conversions[group_kind] = conversions
            return function

        return register

    def hooks(self) -> Hooks:
        """Everything that was registered, for a `konverge.runtime.webhooks.WebhookServer`.

        Raises:
            BuildError: A version of a kind cannot be converted to each of the others.
        """
        mistakes = [mistake for conversions in self._conversions.values() for mistake in conversions.mistakes()]
        if mistakes:
            raise BuildError("webhooks", mistakes)
        return Hooks(
            admission=tuple(webhook.hook() for webhook in self._webhooks.values()),
            conversion=tuple(conversions.hook() for conversions in self._conversions.values()),
        )

    def _register(
        self,
        purpose: Purpose,
        cls: type[Any],
        handler: Callable[[Any, AdmissionRequest[Any]], Any],
        on: Sequence[Operation],
        subresources: Sequence[str],
        failure_policy: FailurePolicy,
        timeout: timedelta,
    ) -> None:
        kind = definition_of(cls).gvk.kind
        webhook = self._webhooks.get((purpose, cls)) or _Webhook(purpose, cls, failure_policy, timeout)
        mistakes = _argument_mistakes(purpose, on, subresources, failure_policy, timeout)
        if (webhook.failure_policy, webhook.timeout) != (failure_policy, timeout):
            mistakes.append(
                f"handlers of {kind} for one purpose are one webhook: expected one failure_policy and one timeout, "
                f"found {webhook.failure_policy}, {webhook.timeout} and {failure_policy}, {timeout}"
            )
        if mistakes:
            raise BuildError(f"webhook {purpose.value} of {kind}: {_name_of(handler)}", mistakes)
        webhook.handlers.append(_Handler(handler, tuple(on), tuple(subresources)))
        self._webhooks[(purpose, cls)] = webhook


async def _validated(cls: type[Any], handlers: Sequence[_Handler], review: AdmissionReview) -> Verdict:
    request: AdmissionRequest[Any] = AdmissionRequest(cls, review)
    subject = _subject(cls, review)
    try:
        resource = _read(cls, review)
    except DecodeError as error:
        return _unreadable(subject, error, request)
    violations: list[Violation] = []
    try:
        for handler in handlers:
            if handler.is_asked(review):
                violations += _violations(await _called(handler, resource, request), handler)
    except Denied as denied:
        return Verdict.denied(denied).with_warnings(request.warnings)
    verdict = Verdict.invalid(subject, violations) if violations else Verdict()
    return verdict.with_warnings(request.warnings)


async def _defaulted(cls: type[Any], handlers: Sequence[_Handler], review: AdmissionReview) -> Verdict:
    request: AdmissionRequest[Any] = AdmissionRequest(cls, review)
    try:
        resource = _read(cls, review)
    except DecodeError as error:
        return _unreadable(_subject(cls, review), error, request)
    before = encode(resource)
    after = before
    try:
        for handler in handlers:
            if handler.is_asked(review):
                returned = await _called(handler, resource, request)
                resource = _checked(returned, cls, handler) if returned is not None else resource
                after = _encoded(resource, handler)
                _check_metadata(before, after, handler)
    except Denied as denied:
        return Verdict.denied(denied).with_warnings(request.warnings)
    held = review.object or {}
    patch = json_patch(held, carried_over(held, before, after))
    return Verdict(patch=tuple(patch)).with_warnings(request.warnings)


def _read(cls: type[Any], review: AdmissionReview) -> Any:
    found = review.old_object if review.operation == "DELETE" else review.object
    return decode(cls, _named(found or {}, review.key))


def _named(obj: Object, key: ObjectKey) -> Object:
    """With the name that an object with ``generateName`` does not have yet; a class always has one."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return obj if "name" in metadata else {**obj, "metadata": {**metadata, "name": key.name}}


def _unreadable(subject: str, error: DecodeError, request: AdmissionRequest[Any]) -> Verdict:
    """Refuse an object that does not fit its class, but let one go that is on its way out."""
    if request.operation == "DELETE" or is_deleting(request.object):
        return Verdict(warnings=(f"{subject} does not fit its class, and was not checked: {error.problem}",))
    problem = error.problem.removeprefix(f"{error.path}: ") if error.path else error.problem
    return Verdict.invalid(subject, [Violation(error.path, problem)])


def _subject(cls: type[Any], review: AdmissionReview) -> str:
    return f"{definition_of(cls).gvk.kind} {review.key}".rstrip()


async def _called(handler: _Handler, resource: Any, request: AdmissionRequest[Any]) -> Any:
    try:
        found = handler.call(resource, request)
        found = await found if inspect.isawaitable(found) else found
        # A generator has not done anything yet: what it raises is the handler's.
        found = _listed(found) if inspect.isgenerator(found) else found
        _check_untouched(request, handler)
        return found
    except (Denied, HandlerError):
        raise
    except Exception as error:
        # Without the error's own text: it may hold a value of the object.
        raise HandlerError(
            f"{handler.name} failed with {type(error).__name__}; the operator's log says more"
        ) from error


def _check_untouched(request: AdmissionRequest[Any], handler: _Handler) -> None:
    for name, shown in request._shown.items():
        if shown != getattr(request._review, name):
            raise HandlerError(
                f"{handler.name} changed request.{name}, which is only to be read: change the object that it was given"
            )


def _listed(found: Iterable[Any]) -> list[Any]:
    listed: list[Any] = []
    for each in found:
        if len(listed) == _MOST_VIOLATIONS:
            raise HandlerError(f"the handler complains more than {_MOST_VIOLATIONS} times")
        listed.append(each)
    return listed


def _violations(found: Any, handler: _Handler) -> list[Violation]:
    if found is None:
        return []
    # A text is an iterable of texts: one complaint for each letter is not what its author means.
    found = [found] if isinstance(found, str | Violation) else found
    if not isinstance(found, Iterable) or isinstance(found, bytes | Mapping):
        raise HandlerError(
            f"{handler.name} returned {type(found).__name__}; expected None, or an iterable of str or Violation"
        )
    violations = []
    for each in _listed(found):
        if not isinstance(each, str | Violation):
            raise HandlerError(f"{handler.name} returned an iterable of {type(each).__name__}; expected str, Violation")
        violations.append(each if isinstance(each, Violation) else Violation("", each))
    return violations


def _checked(returned: Any, cls: type[Any], handler: _Handler) -> Any:
    if not isinstance(returned, cls):
        raise HandlerError(f"{handler.name} returned {type(returned).__name__}; expected {cls.__name__} or None")
    return returned


def _encoded(resource: Any, handler: _Handler) -> Object:
    try:
        encoded = encode(resource)
        strict_json(encoded)
        return encoded
    except Exception as error:
        raise HandlerError(
            f"{handler.name} made of the object what has no form in JSON ({type(error).__name__})"
        ) from error


def _check_metadata(before: Object, after: Object, handler: _Handler) -> None:
    old, new = cast(Object, before["metadata"]), cast(Object, after["metadata"])
    changed = [name for name in sorted({*old, *new} - {*_CHANGEABLE_METADATA}) if old.get(name) != new.get(name)]
    if changed:
        raise HandlerError(
            f"{handler.name} changed metadata.{changed[0]}; of the metadata, only {', '.join(_CHANGEABLE_METADATA)} "
            "may change"
        )


def _argument_mistakes(
    purpose: Purpose,
    on: Sequence[Operation],
    subresources: Sequence[str],
    failure_policy: FailurePolicy,
    timeout: timedelta,
) -> list[str]:
    operations = _OPERATIONS if purpose is Purpose.VALIDATE else DEFAULT_OPERATIONS
    seconds = timeout.total_seconds()
    mistakes = []
    if isinstance(on, str) or not on or not set(on) <= set(operations):
        mistakes.append(f"on: expected some of {', '.join(operations)}, found {on!r}")
    if isinstance(subresources, str) or not set(subresources) <= set(_SUBRESOURCES):
        mistakes.append(f"subresources: expected some of {', '.join(_SUBRESOURCES)}, found {subresources!r}")
    if failure_policy not in ("Fail", "Ignore"):
        mistakes.append(f"failure_policy: expected Fail or Ignore, found {failure_policy!r}")
    if not 1 <= seconds <= 30 or seconds != int(seconds):
        mistakes.append(f"timeout: expected whole seconds, 1 to 30, found {timeout}")
    return mistakes


def _name_of(handler: Any) -> str:
    return str(getattr(handler, "__name__", type(handler).__name__))
