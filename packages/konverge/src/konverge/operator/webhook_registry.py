"""Webhooks on a custom resource's class: handlers get instances, the API server gets verdicts, patches and objects.

`WebhookRegistry` makes `konverge.runtime.webhooks.OperatorHooks` of handlers; `konverge.operator.admission_handlers`
calls
them.

A handler is a plain function or a coroutine function. A plain one runs in the event loop: it computes, and waits for
nothing. One that does not return within the operator's time limit is ended, and its request refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias, TypeVar

from konverge.component import TimeLimit
from konverge.crd import find_definition
from konverge.errors import BuildError
from konverge.operator.admission_handlers import (
    AdmissionHandler,
    AdmissionRequest,
    default_object,
    format_function_name,
    validate_object,
)
from konverge.operator.conversions import ConversionRegistry
from konverge.runtime.webhooks import (
    DEFAULT_OPERATIONS,
    DEFAULT_TIMEOUT,
    AdmissionHook,
    AdmissionOperation,
    FailurePolicy,
    OperatorHooks,
    Purpose,
    Violation,
)

__all__ = ["AdmissionRequest", "Defaulter", "Validator", "WebhookRegistry"]

T = TypeVar("T")
S = TypeVar("S")

_OPERATIONS: tuple[AdmissionOperation, ...] = ("CREATE", "UPDATE", "DELETE")
# Of scale, the object would be a Scale: no class has that form.
_SUBRESOURCES = ("status",)


ViolationArgument: TypeAlias = str | Violation
ViolationsArgument: TypeAlias = Iterable[ViolationArgument] | None
Validator: TypeAlias = Callable[[T, AdmissionRequest[T]], ViolationsArgument | Awaitable[ViolationsArgument]]
"""Says what is wrong with an object; nothing, None or an empty list when it is fine."""

Defaulter: TypeAlias = Callable[[T, AdmissionRequest[T]], T | Awaitable[T | None] | None]
"""Completes an object: changes it, or returns another."""


@dataclass(slots=True)
class _AdmissionWebhook:
    """The handlers of one purpose on one class, which the API server knows as one webhook."""

    purpose: Purpose
    cls: type[Any]
    failure_policy: FailurePolicy
    timeout: timedelta
    handlers: list[AdmissionHandler] = field(default_factory=list)

    def build_hook(self, limit: TimeLimit | None) -> AdmissionHook:
        handlers = tuple(self.handlers)
        answer = validate_object if self.purpose is Purpose.VALIDATE else default_object
        return AdmissionHook(
            purpose=self.purpose,
            mapping=find_definition(self.cls).mapping,
            review=partial(answer, self.cls, handlers, limit=limit),
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
        self._webhooks: dict[tuple[Purpose, type[Any]], _AdmissionWebhook] = {}
        self._conversions: dict[tuple[str, str], ConversionRegistry] = {}

    @property
    def classes(self) -> tuple[type[Any], ...]:
        """The classes with handlers for admission, in order."""
        return tuple(dict.fromkeys(cls for _, cls in self._webhooks))

    def validates(
        self,
        cls: type[T],
        *,
        on: Sequence[AdmissionOperation] = DEFAULT_OPERATIONS,
        subresources: Sequence[str] = (),
        failure_policy: FailurePolicy = "Fail",
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> Callable[[Validator[T]], Validator[T]]:
        """Register a function that judges objects of the class before they are stored; it stays callable.

        It returns (or yields) what is wrong, as sentences or `Violation`; the request is refused with all of them. It
        may raise `konverge.runtime.webhooks.AdmissionDeniedError` instead. An object that does not fit its class is
        refused before
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
        on: Sequence[AdmissionOperation] = DEFAULT_OPERATIONS,
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
            group_kind = find_definition(source).gvk.group_kind
            conversions = self._conversions.get(group_kind) or ConversionRegistry(find_definition(source).mapping)
            conversions.add(source, target, function, format_function_name(function))
            self._conversions[group_kind] = conversions
            return function

        return register

    def build_hooks(self, limit: TimeLimit | None = None) -> OperatorHooks:
        """Everything that was registered, for a `konverge.runtime.webhooks.WebhookServer`.

        Args:
            limit: How long each handler may take without waiting for anything; None is without a limit.

        Raises:
            BuildError: A version of a kind cannot be converted to each of the others.
        """
        mistakes = [mistake for conversions in self._conversions.values() for mistake in conversions.validate()]
        if mistakes:
            raise BuildError("webhooks", mistakes)
        return OperatorHooks(
            admission=tuple(webhook.build_hook(limit) for webhook in self._webhooks.values()),
            conversion=tuple(conversions.build_hook(limit) for conversions in self._conversions.values()),
        )

    def _register(
        self,
        purpose: Purpose,
        cls: type[Any],
        handler: Callable[[Any, AdmissionRequest[Any]], Any],
        on: Sequence[AdmissionOperation],
        subresources: Sequence[str],
        failure_policy: FailurePolicy,
        timeout: timedelta,
    ) -> None:
        kind = find_definition(cls).gvk.kind
        webhook = self._webhooks.get((purpose, cls)) or _AdmissionWebhook(purpose, cls, failure_policy, timeout)
        mistakes = _validate_arguments(purpose, on, subresources, failure_policy, timeout)
        if (webhook.failure_policy, webhook.timeout) != (failure_policy, timeout):
            mistakes.append(
                f"handlers of {kind} for one purpose are one webhook: expected one failure_policy and one timeout, "
                f"found {webhook.failure_policy}, {webhook.timeout} and {failure_policy}, {timeout}"
            )
        if mistakes:
            raise BuildError(f"webhook {purpose.value} of {kind}: {format_function_name(handler)}", mistakes)
        webhook.handlers.append(AdmissionHandler(handler, tuple(on), tuple(subresources)))
        self._webhooks[(purpose, cls)] = webhook


def _validate_arguments(
    purpose: Purpose,
    on: Sequence[AdmissionOperation],
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
