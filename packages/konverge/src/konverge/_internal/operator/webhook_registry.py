"""Webhooks for custom resource classes: handlers get instances; the API server gets results, patches and objects.

`WebhookRegistry` builds `runtime.webhooks.OperatorHooks` from handlers, which
`operator.admission_handlers` calls.

A handler is a plain function or a coroutine function. A plain one runs in the event loop and must not wait. A handler
that exceeds the operator's time limit is interrupted, and its request is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias, TypeVar

from konverge._internal.component import TimeLimit
from konverge._internal.crd import find_definition
from konverge._internal.kube.selectors import LabelSelector
from konverge._internal.operator.admission_handlers import (
    AdmissionHandler,
    AdmissionRequest,
    default_object,
    format_function_name,
    validate_object,
)
from konverge._internal.operator.conversions import ConversionRegistry
from konverge._internal.runtime.webhooks import (
    DEFAULT_OPERATIONS,
    DEFAULT_TIMEOUT,
    AdmissionHook,
    AdmissionOperation,
    FailurePolicy,
    OperatorHooks,
    Purpose,
    Violation,
)
from konverge.errors import BuildError

__all__ = ["AdmissionRequest", "Defaulter", "Validator", "WebhookRegistry"]

T = TypeVar("T")
S = TypeVar("S")

_OPERATIONS: tuple[AdmissionOperation, ...] = ("CREATE", "UPDATE", "DELETE")
# Not scale: its object is a Scale, which does not fit the class.
_SUBRESOURCES = ("status",)


ViolationArgument: TypeAlias = str | Violation
ViolationsArgument: TypeAlias = Iterable[ViolationArgument] | None
Validator: TypeAlias = Callable[[T, AdmissionRequest[T]], ViolationsArgument | Awaitable[ViolationsArgument]]
"""Returns the violations of an object; None or an empty list for a valid object."""

Defaulter: TypeAlias = Callable[[T, AdmissionRequest[T]], T | Awaitable[T | None] | None]
"""Completes an object: modifies it, or returns another one."""


@dataclass(slots=True)
class _AdmissionWebhook:
    """The handlers of one class for one purpose, which are one webhook for the API server."""

    purpose: Purpose
    cls: type[Any]
    failure_policy: FailurePolicy
    timeout: timedelta
    labels: str = ""
    handlers: list[AdmissionHandler] = field(default_factory=list)

    def build_hook(self, limit: TimeLimit | None) -> AdmissionHook:
        handlers = tuple(self.handlers)
        review = validate_object if self.purpose is Purpose.VALIDATE else default_object
        return AdmissionHook(
            purpose=self.purpose,
            mapping=find_definition(self.cls).mapping,
            review=partial(review, self.cls, handlers, limit=limit),
            operations=tuple(
                operation for operation in _OPERATIONS if any(operation in handler.on for handler in handlers)
            ),
            subresources=tuple(sorted({subresource for handler in handlers for subresource in handler.subresources})),
            failure_policy=self.failure_policy,
            timeout=self.timeout,
            labels=LabelSelector.parse(self.labels),
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
        """The classes with admission handlers, in order."""
        return tuple(dict.fromkeys(cls for _, cls in self._webhooks))

    def validates(
        self,
        cls: type[T],
        *,
        on: Sequence[AdmissionOperation] = DEFAULT_OPERATIONS,
        subresources: Sequence[str] = (),
        failure_policy: FailurePolicy = "Fail",
        timeout: timedelta = DEFAULT_TIMEOUT,
        labels: str = "",
    ) -> Callable[[Validator[T]], Validator[T]]:
        """Register a handler; see `Operator.validates`."""

        def register(handler: Validator[T]) -> Validator[T]:
            self._register(Purpose.VALIDATE, cls, handler, on, subresources, failure_policy, timeout, labels)
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
        labels: str = "",
    ) -> Callable[[Defaulter[T]], Defaulter[T]]:
        """Register a handler; see `Operator.defaults`."""

        def register(handler: Defaulter[T]) -> Defaulter[T]:
            self._register(Purpose.DEFAULT, cls, handler, on, subresources, failure_policy, timeout, labels)
            return handler

        return register

    def converts(
        self, source: type[S], target: type[T]
    ) -> Callable[[Callable[[S], T | Awaitable[T]]], Callable[[S], T | Awaitable[T]]]:
        """Register a handler; see `Operator.converts`."""

        def register(function: Callable[[S], T | Awaitable[T]]) -> Callable[[S], T | Awaitable[T]]:
            group_kind = find_definition(source).gvk.group_kind
            conversions = self._conversions.get(group_kind) or ConversionRegistry(find_definition(source).mapping)
            conversions.add(source, target, function, format_function_name(function))
            self._conversions[group_kind] = conversions
            return function

        return register

    def build_hooks(self, limit: TimeLimit | None = None) -> OperatorHooks:
        """Build the hooks for a `runtime.webhooks.WebhookServer` from all registrations.

        Args:
            limit: The time limit of each handler between two waits; None is without a limit.

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
        labels: str,
    ) -> None:
        kind = find_definition(cls).gvk.kind
        webhook = self._webhooks.get((purpose, cls)) or _AdmissionWebhook(purpose, cls, failure_policy, timeout, labels)
        mistakes = _validate_arguments(purpose, on, subresources, failure_policy, timeout)
        mistakes += _find_selector_errors(labels)
        if (webhook.failure_policy, webhook.timeout) != (failure_policy, timeout):
            mistakes.append(
                f"handlers of {kind} for one purpose are one webhook: expected one failure_policy and one timeout, "
                f"found {webhook.failure_policy}, {webhook.timeout} and {failure_policy}, {timeout}"
            )
        if webhook.labels != labels:
            mistakes.append(
                f"handlers of {kind} for one purpose are one webhook: expected one label selector, found "
                f"{webhook.labels!r} and {labels!r}"
            )
        if mistakes:
            raise BuildError(f"webhook {purpose.value} of {kind}: {format_function_name(handler)}", mistakes)
        webhook.handlers.append(AdmissionHandler(handler, tuple(on), tuple(subresources)))
        self._webhooks[(purpose, cls)] = webhook


def _find_selector_errors(labels: object) -> list[str]:
    if not isinstance(labels, str):
        return [f"labels: expected a label selector as text, found {type(labels).__name__}"]
    try:
        LabelSelector.parse(labels).to_object()
    except ValueError as error:
        return [f"labels: {error}"]
    return []


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
