"""Admission webhooks: mutating webhooks one after the other, then validating webhooks in parallel."""

from __future__ import annotations

from dataclasses import replace

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.clock import Entropy
from konverge.errors import ApiError, BadRequestError
from konverge_cluster._internal.embedded.json_patches import PatchFailedError, apply_json_patch
from konverge_cluster._internal.embedded.object_decoding import read_object
from konverge_cluster._internal.embedded.resource_registry import ResourceRegistry, ServedResource
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.validation.field_errors import quote
from konverge_cluster._internal.embedded.webhooks.admission_reviews import (
    AdmissionAttributes,
    WebhookResponse,
    build_review,
    new_denial,
    new_internal_error,
    parse_webhook_response,
)
from konverge_cluster._internal.embedded.webhooks.client_config import CallFailedError, FindService, build_call
from konverge_cluster._internal.embedded.webhooks.configuration_schema import MUTATING, VALIDATING
from konverge_cluster._internal.embedded.webhooks.configurations import ConfiguredWebhook, WebhookParser
from konverge_cluster._internal.embedded.webhooks.pending_calls import CallGenerator, WebhookCall, WebhookReply
from konverge_cluster._internal.embedded.webhooks.webhook_converter import WebhookConverter

__all__ = ["AdmissionWebhooks"]

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_MAX_ROUNDS = 2


class AdmissionWebhooks:
    """Calls the webhooks of the stored configurations.

    Args:
        storage: The storage of configurations and namespaces.
        resources: The served resources and versions.
        conversions: Converts objects to the version that a webhook expects.
        entropy: The source of review UIDs.
        find_service: Returns the Services that configurations name.
    """

    def __init__(
        self,
        storage: Storage,
        resources: ResourceRegistry,
        conversions: WebhookConverter,
        entropy: Entropy,
        find_service: FindService,
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._conversions = conversions
        self._entropy = entropy
        self._find_service = find_service
        self._mutating = WebhookParser()
        self._validating = WebhookParser()

    def mutate(self, admission: AdmissionAttributes) -> CallGenerator[Object | None]:
        """Return the object after all mutating webhooks; the argument is not changed.

        They are called in the order of their configurations. A webhook with a reinvocation policy is called again if a
        later one changed the object.

        Raises:
            ApiError: A webhook denies the request, or a required webhook cannot be called.
        """
        webhooks = self._mutating.list_webhooks(self._storage.list_objects(MUTATING))
        due, asked_before = set(range(len(webhooks))), set[int]()
        for _ in range(_MAX_ROUNDS):
            now, due = due, set()
            for index in sorted(now):
                webhook = webhooks[index]
                changed = yield from self._call_mutating_webhook(webhook, admission)
                if changed is not None:
                    admission = replace(admission, object=changed)
                    due |= asked_before
                    asked_before.clear()
                if webhook.is_reinvoked:
                    asked_before.add(index)
            if not due:
                break
        return admission.object

    def validate(self, admission: AdmissionAttributes) -> CallGenerator[None]:
        """Call all validating webhooks in parallel.

        Raises:
            ApiError: A webhook denies the request, or a required webhook cannot be called; the first such error.
        """
        webhooks = self._validating.list_webhooks(self._storage.list_objects(VALIDATING))
        calls: list[tuple[ConfiguredWebhook, str, WebhookCall]] = []
        for webhook in webhooks:
            target = self._find_target(webhook, admission)
            if target is not None:
                uid, call = yield from self._build_call(webhook, target, admission)
                calls.append((webhook, uid, call))
        if not calls:
            return
        replies = yield tuple(call for _, _, call in calls)
        failures = []
        for (webhook, uid, call), reply in zip(calls, replies, strict=True):
            try:
                self._check_reply(webhook, call, reply, uid, admission, is_mutating=False)
            except ApiError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _call_mutating_webhook(
        self, webhook: ConfiguredWebhook, admission: AdmissionAttributes
    ) -> CallGenerator[Object | None]:
        """Return the object from one mutating webhook; None if it changes nothing."""
        target = self._find_target(webhook, admission)
        if target is None:
            return None
        uid, call = yield from self._build_call(webhook, target, admission)
        (reply,) = yield (call,)
        verdict = self._check_reply(webhook, call, reply, uid, admission, is_mutating=True)
        if verdict is None or not verdict.patch:
            return None
        if admission.object is None:
            detail = "attempted to modify the object, which is not supported for this operation"
            raise new_internal_error(f"admission webhook {quote(webhook.name)} {detail}")
        (before,) = yield from self._conversions.convert([admission.object], admission.resource, target)
        try:
            patched = read_object(target, apply_json_patch(before, verdict.patch))
        except PatchFailedError as error:
            raise new_internal_error(error.detail) from None
        except BadRequestError as error:
            raise new_internal_error(error.message) from None
        (after,) = yield from self._conversions.convert([patched], target, admission.resource)
        return None if after == admission.object else after

    def _check_reply(
        self,
        webhook: ConfiguredWebhook,
        call: WebhookCall,
        reply: WebhookReply,
        uid: str,
        admission: AdmissionAttributes,
        *,
        is_mutating: bool,
    ) -> WebhookResponse | None:
        """Return the response of a webhook that admits the request; None if its failure is ignored.

        Raises:
            ApiError: The webhook denies the request, or its failure counts.
        """
        try:
            verdict = parse_webhook_response(call, reply, uid, is_mutating=is_mutating)
        except CallFailedError as error:
            if webhook.ignores_failure:
                return None
            raise new_internal_error(f"failed calling webhook {quote(webhook.name)}: {error}") from None
        admission.warnings.extend(verdict.warnings)
        if not verdict.allowed:
            raise new_denial(webhook.name, verdict.status)
        return verdict

    def _find_target(self, webhook: ConfiguredWebhook, admission: AdmissionAttributes) -> ServedResource | None:
        """Return the version for which the webhook is called; None if it is not called."""
        resource = admission.resource
        versions = self._resources.list_by_storage(resource.storage)
        target = webhook.match_resource(admission.operation, resource, admission.subresource, versions)
        if target is None or not webhook.selects(
            self._find_namespace_labels(admission), (admission.object, admission.old)
        ):
            return None
        return target

    def _find_namespace_labels(self, admission: AdmissionAttributes) -> dict[str, str] | None:
        if admission.resource.gvk == _NAMESPACE:
            obj = admission.object if admission.object is not None else admission.old
        elif admission.namespace:
            stored = self._storage.get("namespaces", ObjectKey("", admission.namespace))
            obj = None if stored is None else stored.object
        else:
            return None
        return (obj["metadata"].get("labels") or {}) if obj is not None else {}

    def _build_call(
        self, webhook: ConfiguredWebhook, target: ServedResource, admission: AdmissionAttributes
    ) -> CallGenerator[tuple[str, WebhookCall]]:
        present = [obj for obj in (admission.object, admission.old) if obj is not None]
        forms = iter((yield from self._conversions.convert(present, admission.resource, target)))
        obj = None if admission.object is None else next(forms)
        old = None if admission.old is None else next(forms)
        uid = self._entropy.uid()
        review = build_review(admission, target, uid, obj=obj, old=old)
        return uid, build_call(webhook.client_config, review, webhook.timeout_seconds, self._find_service)
