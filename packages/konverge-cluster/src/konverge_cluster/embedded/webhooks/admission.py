"""Admission by webhooks: the mutating ones one after the other, then the validating ones side by side."""

from __future__ import annotations

from dataclasses import replace

from konverge.clock import Entropy
from konverge.errors import ApiError, BadRequestError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.embedded.json_patches import PatchFailedError, apply_json_patch
from konverge_cluster.embedded.object_decoding import read_object
from konverge_cluster.embedded.resource_registry import ResourceRegistry, ServedResource
from konverge_cluster.embedded.storage import Storage
from konverge_cluster.embedded.validation.field_errors import quote
from konverge_cluster.embedded.webhooks.admission_reviews import (
    AdmissionAttributes,
    WebhookResponse,
    build_review,
    new_denial,
    new_internal_error,
    parse_webhook_response,
)
from konverge_cluster.embedded.webhooks.client_config import CallFailedError, FindService, build_call
from konverge_cluster.embedded.webhooks.configuration_schema import MUTATING, VALIDATING
from konverge_cluster.embedded.webhooks.configurations import ConfiguredWebhook, WebhookParser
from konverge_cluster.embedded.webhooks.pending_calls import CallGenerator, WebhookCall, WebhookReply
from konverge_cluster.embedded.webhooks.webhook_converter import WebhookConverter

__all__ = ["AdmissionWebhooks"]

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_MAX_ROUNDS = 2


class AdmissionWebhooks:
    """Asks the webhooks that the stored configurations name.

    Args:
        storage: Where the configurations and the namespaces are.
        resources: What is served, and in which versions.
        conversions: Brings objects into the version that a webhook wants to see.
        entropy: Identifies the questions.
        find_service: Finds the Services that configurations name.
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
        """The object as the mutating webhooks leave it; what is given is not changed.

        They are asked in the order of their configurations. One that wants to is asked a second time when another one
        after it changed the object.

        Raises:
            ApiError: One denies the request, or one that must be asked cannot be.
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
        """Ask the validating webhooks, all at once.

        Raises:
            ApiError: One denies the request, or one that must be asked cannot be; the first of them is told.
        """
        webhooks = self._validating.list_webhooks(self._storage.list_objects(VALIDATING))
        asked: list[tuple[ConfiguredWebhook, str, WebhookCall]] = []
        for webhook in webhooks:
            target = self._find_target(webhook, admission)
            if target is not None:
                uid, call = yield from self._build_call(webhook, target, admission)
                asked.append((webhook, uid, call))
        if not asked:
            return
        replies = yield tuple(call for _, _, call in asked)
        failures = []
        for (webhook, uid, call), reply in zip(asked, replies, strict=True):
            try:
                self._check_reply(webhook, call, reply, uid, admission, is_mutating=False)
            except ApiError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _call_mutating_webhook(
        self, webhook: ConfiguredWebhook, admission: AdmissionAttributes
    ) -> CallGenerator[Object | None]:
        """What one mutating webhook makes of the object; None when it changes nothing."""
        target = self._find_target(webhook, admission)
        if target is None:
            return None
        uid, call = yield from self._build_call(webhook, target, admission)
        (reply,) = yield (call,)
        verdict = self._check_reply(webhook, call, reply, uid, admission, is_mutating=True)
        if verdict is None or not verdict.patch:
            return None
        if admission.object is None:
            told = "attempted to modify the object, which is not supported for this operation"
            raise new_internal_error(f"admission webhook {quote(webhook.name)} {told}")
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
        """What a webhook said, if that lets the request pass; None where its silence is no matter.

        Raises:
            ApiError: It does not.
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
        """In which version the webhook is asked; None when it is not asked."""
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
