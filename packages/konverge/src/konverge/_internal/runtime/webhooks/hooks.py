"""The webhooks of an operator as values: their rules and their handlers.

Objects are JSON here; `operator.webhook_registry` builds hooks from handlers that receive classes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Literal, TypeAlias

from konverge._internal.kube import Object, RestMapping
from konverge._internal.kube.selectors import LabelSelector
from konverge._internal.runtime.webhooks.responses import AdmissionResponse
from konverge._internal.runtime.webhooks.reviews import AdmissionOperation, AdmissionReview

__all__ = [
    "DEFAULT_OPERATIONS",
    "DEFAULT_TIMEOUT",
    "AdmissionHook",
    "ConversionHook",
    "FailurePolicy",
    "OperatorHooks",
    "Purpose",
]

FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]

DEFAULT_OPERATIONS: tuple[AdmissionOperation, ...] = ("CREATE", "UPDATE")
# The API's own default (admissionregistration/v1, timeoutSeconds).
DEFAULT_TIMEOUT = timedelta(seconds=10)


class Purpose(Enum):
    """Purpose of an admission webhook; the value is the first part of its path and of its name."""

    VALIDATE = "validate"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class AdmissionHook:
    """One admission webhook: one kind, one purpose.

    Args:
        purpose: Whether it validates or defaults objects.
        mapping: The kind, in the version that the handlers receive.
        review: Handles a review.
        operations: The operations that it reviews.
        subresources: The subresources that it reviews in addition, for example ``status``.
        failure_policy: Whether the API server refuses a request when it cannot call the webhook.
        timeout: Timeout of the API server, in whole seconds, 1 to 30.
        labels: The objects that it reviews; an empty selector is all.
        handlers: Names of the handlers that `review` calls, for messages.
    """

    purpose: Purpose
    mapping: RestMapping
    review: Callable[[AdmissionReview], Awaitable[AdmissionResponse]] = field(repr=False)
    operations: tuple[AdmissionOperation, ...] = DEFAULT_OPERATIONS
    subresources: tuple[str, ...] = ()
    failure_policy: FailurePolicy = "Fail"
    timeout: timedelta = DEFAULT_TIMEOUT
    labels: LabelSelector = field(default_factory=LabelSelector)
    handlers: str = "the handler"

    @property
    def path(self) -> str:
        """The HTTP path, for example ``/validate/demo.konverge.dev/v1/webapps``."""
        return f"/{self.purpose.value}/{self.mapping.gvk.api_version}/{self.mapping.plural}"

    @property
    def name(self) -> str:
        """The fully qualified name that the API server reports with a refusal."""
        gvk = self.mapping.gvk
        return f"{self.purpose.value}.{self.mapping.plural}.{gvk.version}.{gvk.group or 'core'}"


@dataclass(frozen=True, slots=True)
class ConversionHook:
    """The conversion webhook of one kind, between all of its versions.

    Args:
        mapping: The kind, in any version.
        convert: Converts an object to the given ``apiVersion``.
    """

    mapping: RestMapping
    convert: Callable[[Object, str], Awaitable[Object]] = field(repr=False)

    @property
    def path(self) -> str:
        """The HTTP path, for example ``/convert/demo.konverge.dev/webapps``."""
        return f"/convert/{self.mapping.gvk.group}/{self.mapping.plural}"


@dataclass(frozen=True, slots=True)
class OperatorHooks:
    """All admission and conversion webhooks of one operator."""

    admission: tuple[AdmissionHook, ...] = ()
    conversion: tuple[ConversionHook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.admission or self.conversion)
