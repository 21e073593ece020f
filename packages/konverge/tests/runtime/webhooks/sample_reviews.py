"""Reviews as an API server sends them."""

from __future__ import annotations

import base64
import json
from typing import Any

from konverge._internal.runtime.webhooks import AdmissionHook, AdmissionResponse, AdmissionReview, Purpose
from konverge.kube import GroupVersionKind, Object, RestMapping

GVK = GroupVersionKind("webhooks.konverge.test", "v1", "WebApp")
MAPPING = RestMapping(GVK, "webapps", namespaced=True)


def build_web_app(**spec: Any) -> Object:
    return {
        "apiVersion": GVK.api_version,
        "kind": GVK.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


def build_admission_review(operation: str = "CREATE", **changes: Any) -> Object:
    request: Object = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": GVK.group, "version": GVK.version, "kind": GVK.kind},
        "resource": {"group": GVK.group, "version": GVK.version, "resource": "webapps"},
        "requestKind": {"group": GVK.group, "version": GVK.version, "kind": GVK.kind},
        "name": "web",
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "ann", "uid": "7", "groups": ["ops"], "extra": {"scopes": ["a", "b"]}},
        "object": None if operation == "DELETE" else build_web_app(replicas=2),
        "oldObject": None if operation == "CREATE" else build_web_app(replicas=1),
        "dryRun": False,
        "options": {"kind": "CreateOptions"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **changes}}


def build_conversion_review(*objects: Object, to: str = "webhooks.konverge.test/v1", **changes: Any) -> Object:
    request = {"uid": "705ab4f5", "desiredAPIVersion": to, "objects": list(objects), **changes}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def encode_review(review: Object) -> bytes:
    return json.dumps(review).encode()


def decode_response(body: bytes) -> Object:
    found: Object = json.loads(body)["response"]
    return found


def decode_patch(found: Object) -> list[Object]:
    operations: list[Object] = json.loads(base64.b64decode(found["patch"]))
    return operations


async def allow_review(review: AdmissionReview) -> AdmissionResponse:
    return AdmissionResponse()


def build_hook(review: Any = allow_review, purpose: Purpose = Purpose.VALIDATE, **options: Any) -> AdmissionHook:
    return AdmissionHook(purpose, MAPPING, review, **options)
