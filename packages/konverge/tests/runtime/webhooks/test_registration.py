"""The manifests that register webhooks with an API server."""

from __future__ import annotations

import json
from datetime import timedelta

from konverge._internal.runtime.webhooks import (
    ConversionHook,
    OperatorHooks,
    Purpose,
    ServiceReference,
    WebhookEndpoint,
    build_conversion_config,
    build_webhook_manifests,
)
from tests.runtime.webhooks.sample_reviews import MAPPING, allow_review, build_hook

VALIDATING = build_hook(
    operations=("CREATE", "UPDATE", "DELETE"),
    subresources=("status",),
    failure_policy="Ignore",
    timeout=timedelta(seconds=5),
)
DEFAULTING = build_hook(purpose=Purpose.DEFAULT)


async def converting(obj: object, api_version: str) -> dict[str, object]:
    raise NotImplementedError


HOOKS = OperatorHooks((VALIDATING, DEFAULTING), (ConversionHook(MAPPING, converting),))
DEVELOPMENT = WebhookEndpoint("https://127.0.0.1:9443/", b"PEM")
IN_CLUSTER = WebhookEndpoint(ServiceReference("system", "webapp-webhooks", 8443))


def test_each_purpose_has_a_configuration_of_its_own() -> None:
    mutating, validating = build_webhook_manifests("webapp", HOOKS, DEVELOPMENT)

    assert mutating["kind"] == "MutatingWebhookConfiguration"
    assert validating == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "webapp"},
        "webhooks": [
            {
                "name": "validate.webapps.v1.webhooks.konverge.test",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": "https://127.0.0.1:9443/validate/webhooks.konverge.test/v1/webapps",
                    "caBundle": "UEVN",
                },
                "rules": [
                    {
                        "apiGroups": ["webhooks.konverge.test"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": ["webapps", "webapps/status"],
                        "scope": "Namespaced",
                    }
                ],
                "failurePolicy": "Ignore",
                "matchPolicy": "Equivalent",
                "sideEffects": "None",
                "timeoutSeconds": 5,
            }
        ],
    }


def test_a_configuration_without_webhooks_is_not_made() -> None:
    assert build_webhook_manifests("webapp", OperatorHooks(), DEVELOPMENT) == []
    assert [each["kind"] for each in build_webhook_manifests("webapp", OperatorHooks((DEFAULTING,)), DEVELOPMENT)] == [
        "MutatingWebhookConfiguration"
    ]


def test_in_a_cluster_webhooks_are_behind_a_service() -> None:
    (found,) = build_webhook_manifests("webapp", OperatorHooks((DEFAULTING,)), IN_CLUSTER)

    assert found["webhooks"][0]["clientConfig"] == {
        "service": {
            "namespace": "system",
            "name": "webapp-webhooks",
            "path": "/default/webhooks.konverge.test/v1/webapps",
            "port": 8443,
        }
    }


def test_the_same_hooks_give_the_same_bytes() -> None:
    def render(hooks: OperatorHooks, **annotations: str) -> str:
        return json.dumps(build_webhook_manifests("webapp", hooks, DEVELOPMENT, annotations=annotations))

    reordered = OperatorHooks(tuple(reversed(HOOKS.admission)))

    assert render(HOOKS, a="1", b="2") == render(reordered, b="2", a="1")


def test_a_kind_is_converted_where_its_functions_are() -> None:
    assert build_conversion_config(MAPPING, HOOKS, DEVELOPMENT) == {
        "url": "https://127.0.0.1:9443/convert/webhooks.konverge.test/webapps",
        "caBundle": "UEVN",
    }
    assert build_conversion_config(MAPPING, OperatorHooks(), DEVELOPMENT) is None


def test_a_bundle_is_not_shown() -> None:
    assert "PEM" not in repr(DEVELOPMENT)
    assert allow_review.__name__ not in repr(VALIDATING)
