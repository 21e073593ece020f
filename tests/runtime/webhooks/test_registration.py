"""The manifests that tell an API server of webhooks."""

from __future__ import annotations

import json
from datetime import timedelta

from konverge.runtime.webhooks import (
    ConversionHook,
    Endpoint,
    Hooks,
    Purpose,
    ServiceReference,
    conversion_config,
    webhook_manifests,
)
from tests.runtime.webhooks.questions import MAPPING, a_hook, allowing

VALIDATING = a_hook(
    operations=("CREATE", "UPDATE", "DELETE"),
    subresources=("status",),
    failure_policy="Ignore",
    timeout=timedelta(seconds=5),
)
DEFAULTING = a_hook(purpose=Purpose.DEFAULT)


async def converting(obj: object, api_version: str) -> dict[str, object]:
    raise NotImplementedError


HOOKS = Hooks((VALIDATING, DEFAULTING), (ConversionHook(MAPPING, converting),))
DEVELOPMENT = Endpoint("https://127.0.0.1:9443/", b"PEM")
IN_CLUSTER = Endpoint(ServiceReference("system", "webapp-webhooks", 8443))


def test_each_purpose_has_a_configuration_of_its_own() -> None:
    mutating, validating = webhook_manifests("webapp", HOOKS, DEVELOPMENT)

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
    assert webhook_manifests("webapp", Hooks(), DEVELOPMENT) == []
    assert [each["kind"] for each in webhook_manifests("webapp", Hooks((DEFAULTING,)), DEVELOPMENT)] == [
        "MutatingWebhookConfiguration"
    ]


def test_in_a_cluster_webhooks_are_behind_a_service() -> None:
    (found,) = webhook_manifests("webapp", Hooks((DEFAULTING,)), IN_CLUSTER)

    assert found["webhooks"][0]["clientConfig"] == {
        "service": {
            "namespace": "system",
            "name": "webapp-webhooks",
            "path": "/default/webhooks.konverge.test/v1/webapps",
            "port": 8443,
        }
    }


def test_the_same_hooks_give_the_same_bytes() -> None:
    def written(hooks: Hooks, **annotations: str) -> str:
        return json.dumps(webhook_manifests("webapp", hooks, DEVELOPMENT, annotations=annotations))

    reordered = Hooks(tuple(reversed(HOOKS.admission)))

    assert written(HOOKS, a="1", b="2") == written(reordered, b="2", a="1")


def test_a_kind_is_converted_where_its_functions_are() -> None:
    assert conversion_config(MAPPING, HOOKS, DEVELOPMENT) == {
        "url": "https://127.0.0.1:9443/convert/webhooks.konverge.test/webapps",
        "caBundle": "UEVN",
    }
    assert conversion_config(MAPPING, Hooks(), DEVELOPMENT) is None


def test_a_bundle_is_not_shown() -> None:
    assert "PEM" not in repr(DEVELOPMENT)
    assert allowing.__name__ not in repr(VALIDATING)
