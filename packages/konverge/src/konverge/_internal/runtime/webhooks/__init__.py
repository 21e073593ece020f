"""Admission and conversion webhooks: requests that an API server sends to an operator while it serves another request.

The input is AdmissionReviews and ConversionReviews over HTTPS; `OperatorHooks` define the handlers. The output is
admission responses, patches and converted objects. Parsing and encoding of reviews, the patch, the response and the
manifests are pure. `review_handler` adds deadlines and `application` HTTP; `self_signed_certificate`,
`secret_certificate` and `certificate_rotation` provide a self-signed certificate.

Invariant: every review gets a response in time. A handler that fails causes a refusal that names it, never a hanging
request of another client.
"""

from typing import TYPE_CHECKING

from konverge._internal.runtime.webhooks.hooks import (
    DEFAULT_OPERATIONS,
    DEFAULT_TIMEOUT,
    AdmissionHook,
    ConversionHook,
    FailurePolicy,
    OperatorHooks,
    Purpose,
)
from konverge._internal.runtime.webhooks.json_patch import create_json_patch, merge_partial_change
from konverge._internal.runtime.webhooks.registration import (
    ServiceReference,
    WebhookEndpoint,
    build_conversion_config,
    build_webhook_manifests,
    register,
    unregister,
)
from konverge._internal.runtime.webhooks.responses import AdmissionDeniedError, AdmissionResponse, Violation
from konverge._internal.runtime.webhooks.review_handler import HandlerError
from konverge._internal.runtime.webhooks.reviews import (
    AdmissionOperation,
    AdmissionReview,
    ConversionReview,
    UserInfo,
    encode_strict_json,
)
from konverge._internal.runtime.webhooks.webhook_observer import WebhookObserver

if TYPE_CHECKING:
    from konverge._internal.runtime.webhooks.application import ServerLimits
    from konverge._internal.runtime.webhooks.webhook_server import WebhookOptions, WebhookServer
else:

    def __getattr__(name: str) -> object:
        """Import the server on first use: a program that only registers handlers needs no HTTP library."""
        if name == "ServerLimits":
            from konverge._internal.runtime.webhooks.application import ServerLimits

            return ServerLimits
        if name in ("WebhookOptions", "WebhookServer"):
            from konverge._internal.runtime.webhooks import webhook_server

            return getattr(webhook_server, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DEFAULT_OPERATIONS",
    "DEFAULT_TIMEOUT",
    "AdmissionDeniedError",
    "AdmissionHook",
    "AdmissionOperation",
    "AdmissionResponse",
    "AdmissionReview",
    "ConversionHook",
    "ConversionReview",
    "FailurePolicy",
    "HandlerError",
    "OperatorHooks",
    "Purpose",
    "ServerLimits",
    "ServiceReference",
    "UserInfo",
    "Violation",
    "WebhookEndpoint",
    "WebhookObserver",
    "WebhookOptions",
    "WebhookServer",
    "build_conversion_config",
    "build_webhook_manifests",
    "create_json_patch",
    "encode_strict_json",
    "merge_partial_change",
    "register",
    "unregister",
]
