"""Admission and conversion webhooks: requests, answers and options."""

from __future__ import annotations

from konverge._internal.operator.webhook_registry import (
    AdmissionRequest,
)
from konverge._internal.runtime.webhooks import (
    DEFAULT_OPERATIONS,
    AdmissionDeniedError,
    AdmissionOperation,
    FailurePolicy,
    ServerLimits,
    ServiceReference,
    UserInfo,
    Violation,
    WebhookOptions,
    build_conversion_config,
    build_webhook_manifests,
)

__all__ = [
    "DEFAULT_OPERATIONS",
    "AdmissionDeniedError",
    "AdmissionOperation",
    "AdmissionRequest",
    "FailurePolicy",
    "ServerLimits",
    "ServiceReference",
    "UserInfo",
    "Violation",
    "WebhookOptions",
    "build_conversion_config",
    "build_webhook_manifests",
]
