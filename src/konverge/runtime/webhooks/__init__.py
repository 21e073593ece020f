"""Admission and conversion webhooks: what an API server asks an operator while it serves a request.

In come AdmissionReviews and ConversionReviews over HTTPS; `Hooks` say who answers which; out go verdicts, patches and
converted objects. Reading and writing reviews, the patch, the verdict and the manifests are pure; `answering` adds
deadlines, `server` HTTP, `self_signed`, `secret` and `rotation` a certificate of our own.

Invariant: every question gets an answer in time. A handler that fails is a refusal that names it, never a hung request
of somebody else's.
"""

from typing import TYPE_CHECKING

from konverge.runtime.webhooks.answering import HandlerError
from konverge.runtime.webhooks.hooks import (
    DEFAULT_OPERATIONS,
    DEFAULT_TIMEOUT,
    AdmissionHook,
    ConversionHook,
    FailurePolicy,
    Hooks,
    Purpose,
)
from konverge.runtime.webhooks.observing import WebhookObserver
from konverge.runtime.webhooks.patching import carried_over, json_patch
from konverge.runtime.webhooks.registration import (
    Endpoint,
    ServiceReference,
    conversion_config,
    register,
    unregister,
    webhook_manifests,
)
from konverge.runtime.webhooks.reviews import AdmissionReview, ConversionReview, Operation, UserInfo, strict_json
from konverge.runtime.webhooks.verdicts import Denied, Verdict, Violation

if TYPE_CHECKING:
    from konverge.runtime.webhooks.server import Limits
    from konverge.runtime.webhooks.serving import WebhookOptions, WebhookServer
else:

    def __getattr__(name: str) -> object:
        """Import the server when it is asked for: who only registers handlers needs no HTTP library."""
        if name == "Limits":
            from konverge.runtime.webhooks.server import Limits

            return Limits
        if name in ("WebhookOptions", "WebhookServer"):
            from konverge.runtime.webhooks import serving

            return getattr(serving, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DEFAULT_OPERATIONS",
    "DEFAULT_TIMEOUT",
    "AdmissionHook",
    "AdmissionReview",
    "ConversionHook",
    "ConversionReview",
    "Denied",
    "Endpoint",
    "FailurePolicy",
    "HandlerError",
    "Hooks",
    "Limits",
    "Operation",
    "Purpose",
    "ServiceReference",
    "UserInfo",
    "Verdict",
    "Violation",
    "WebhookObserver",
    "WebhookOptions",
    "WebhookServer",
    "carried_over",
    "conversion_config",
    "json_patch",
    "register",
    "strict_json",
    "unregister",
    "webhook_manifests",
]
