"""The webhooks of an operator as values: what each is asked about, and what answers.

Here objects are JSON; `konverge.operator.webhook_registry` makes hooks of handlers that work on classes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Literal, TypeAlias

from konverge.kube import Object, RestMapping
from konverge.runtime.webhooks.responses import AdmissionResponse
from konverge.runtime.webhooks.reviews import AdmissionOperation, AdmissionReview

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
# The API's own (admissionregistration/v1, timeoutSeconds).
DEFAULT_TIMEOUT = timedelta(seconds=10)


class Purpose(Enum):
    """What an admission webhook is for; the value is the first part of its path and of its name."""

    VALIDATE = "validate"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class AdmissionHook:
    """One admission webhook: one kind, one purpose.

    Args:
        purpose: Whether it judges objects or completes them.
        mapping: The kind, in the version that the handlers work on.
        review: What answers.
        operations: What it is asked about.
        subresources: Which of the kind's subresources it is asked about too, for example ``status``.
        failure_policy: Whether a request is refused when the webhook cannot be asked.
        timeout: How long the API server waits, in whole seconds, 1 to 30.
        handlers: What `review` calls, by name, for messages.
    """

    purpose: Purpose
    mapping: RestMapping
    review: Callable[[AdmissionReview], Awaitable[AdmissionResponse]] = field(repr=False)
    operations: tuple[AdmissionOperation, ...] = DEFAULT_OPERATIONS
    subresources: tuple[str, ...] = ()
    failure_policy: FailurePolicy = "Fail"
    timeout: timedelta = DEFAULT_TIMEOUT
    handlers: str = "the handler"

    @property
    def path(self) -> str:
        """Where it is served, for example ``/validate/demo.konverge.dev/v1/webapps``."""
        return f"/{self.purpose.value}/{self.mapping.gvk.api_version}/{self.mapping.plural}"

    @property
    def name(self) -> str:
        """What the API server calls it when it passes on a refusal; fully qualified."""
        gvk = self.mapping.gvk
        return f"{self.purpose.value}.{self.mapping.plural}.{gvk.version}.{gvk.group}"


@dataclass(frozen=True, slots=True)
class ConversionHook:
    """The conversion webhook of one kind, between all of its versions.

    Args:
        mapping: The kind; in which version does not matter.
        convert: Turns an object into the form of that ``apiVersion``.
    """

    mapping: RestMapping
    convert: Callable[[Object, str], Awaitable[Object]] = field(repr=False)

    @property
    def path(self) -> str:
        """Where it is served, for example ``/convert/demo.konverge.dev/webapps``."""
        return f"/convert/{self.mapping.gvk.group}/{self.mapping.plural}"


@dataclass(frozen=True, slots=True)
class OperatorHooks:
    """All webhooks of one operator."""

    admission: tuple[AdmissionHook, ...] = ()
    conversion: tuple[ConversionHook, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.admission or self.conversion)
