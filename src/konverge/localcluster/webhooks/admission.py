"""Admission by webhooks: the mutating ones one after the other, then the validating ones side by side."""

from __future__ import annotations

from dataclasses import replace

from konverge.clock import Entropy
from konverge.errors import ApiError, BadRequestError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.localcluster.incoming import read_object
from konverge.localcluster.patches import PatchFailedError, json_patch
from konverge.localcluster.resources import Resource, Resources
from konverge.localcluster.storage import Storage
from konverge.localcluster.validation.mistakes import quoted
from konverge.localcluster.webhooks.clients import CallFailedError, FindService, call_of
from konverge.localcluster.webhooks.configurations import Webhook, Webhooks
from konverge.localcluster.webhooks.consulting import Call, Consulting, Reply
from konverge.localcluster.webhooks.conversion import Conversions
from konverge.localcluster.webhooks.kinds import MUTATING, VALIDATING
from konverge.localcluster.webhooks.reviews import (
    Admission,
    Verdict,
    denial,
    internal_error,
    request_review,
    verdict_of,
)

__all__ = ["AdmissionWebhooks"]

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_PASSES = 2


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
        resources: Resources,
        conversions: Conversions,
        entropy: Entropy,
        find_service: FindService,
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._conversions = conversions
        self._entropy = entropy
        self._find_service = find_service
        self._mutating = Webhooks()
        self._validating = Webhooks()

    def mutated(self, admission: Admission) -> Consulting[Object | None]:
        """The object as the mutating webhooks leave it; what is given is not changed.

        They are asked in the order of their configurations. One that wants to is asked a second time when another one
        after it changed the object.

        Raises:
            ApiError: One denies the request, or one that must be asked cannot be.
        """
        webhooks = self._mutating.of(self._storage.items(MUTATING))
        due, asked_before = set(range(len(webhooks))), set[int]()
        for _ in range(_PASSES):
            now, due = due, set()
            for index in sorted(now):
                webhook = webhooks[index]
                changed = yield from self._changed(webhook, admission)
                if changed is not None:
                    admission = replace(admission, object=changed)
                    due |= asked_before
                    asked_before.clear()
                if webhook.is_reinvoked:
                    asked_before.add(index)
            if not due:
                break
        return admission.object

    def validate(self, admission: Admission) -> Consulting[None]:
        """Ask the validating webhooks, all at once.

        Raises:
            ApiError: One denies the request, or one that must be asked cannot be; the first of them is told.
        """
        webhooks = self._validating.of(self._storage.items(VALIDATING))
        asked: list[tuple[Webhook, str, Call]] = []
        for webhook in webhooks:
            target = self._target(webhook, admission)
            if target is not None:
                uid, call = yield from self._question(webhook, target, admission)
                asked.append((webhook, uid, call))
        if not asked:
            return
        replies = yield tuple(call for _, _, call in asked)
        failures = []
        for (webhook, uid, call), reply in zip(asked, replies, strict=True):
            try:
                self._judged(webhook, call, reply, uid, admission, is_mutating=False)
            except ApiError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _changed(self, webhook: Webhook, admission: Admission) -> Consulting[Object | None]:
        """What one mutating webhook makes of the object; None when it changes nothing."""
        target = self._target(webhook, admission)
        if target is None:
            return None
        uid, call = yield from self._question(webhook, target, admission)
        (reply,) = yield (call,)
        verdict = self._judged(webhook, call, reply, uid, admission, is_mutating=True)
        if verdict is None or not verdict.patch:
            return None
        if admission.object is None:
            told = "attempted to modify the object, which is not supported for this operation"
            raise internal_error(f"admission webhook {quoted(webhook.name)} {told}")
        (before,) = yield from self._conversions.between([admission.object], admission.resource, target)
        try:
            patched = read_object(target, json_patch(before, verdict.patch))
        except PatchFailedError as error:
            raise internal_error(error.why) from None
        except BadRequestError as error:
            raise internal_error(error.message) from None
        (after,) = yield from self._conversions.between([patched], target, admission.resource)
        return None if after == admission.object else after

    def _judged(
        self, webhook: Webhook, call: Call, reply: Reply, uid: str, admission: Admission, *, is_mutating: bool
    ) -> Verdict | None:
        """What a webhook said, if that lets the request pass; None where its silence is no matter.

        Raises:
            ApiError: It does not.
        """
        try:
            verdict = verdict_of(call, reply, uid, is_mutating=is_mutating)
        except CallFailedError as error:
            if webhook.ignores_failure:
                return None
            raise internal_error(f"failed calling webhook {quoted(webhook.name)}: {error}") from None
        admission.told.extend(verdict.warnings)
        if not verdict.allowed:
            raise denial(webhook.name, verdict.status)
        return verdict

    def _target(self, webhook: Webhook, admission: Admission) -> Resource | None:
        """In which version the webhook is asked; None when it is not asked."""
        resource = admission.resource
        versions = self._resources.stored_as(resource.storage)
        target = webhook.resource_asked(admission.operation, resource, admission.subresource, versions)
        if target is None or not webhook.selects(self._namespace_labels(admission), (admission.object, admission.old)):
            return None
        return target

    def _namespace_labels(self, admission: Admission) -> dict[str, str] | None:
        if admission.resource.gvk == _NAMESPACE:
            obj = admission.object if admission.object is not None else admission.old
        elif admission.namespace:
            stored = self._storage.get("namespaces", ObjectKey("", admission.namespace))
            obj = None if stored is None else stored.object
        else:
            return None
        return (obj["metadata"].get("labels") or {}) if obj is not None else {}

    def _question(self, webhook: Webhook, target: Resource, admission: Admission) -> Consulting[tuple[str, Call]]:
        present = [obj for obj in (admission.object, admission.old) if obj is not None]
        forms = iter((yield from self._conversions.between(present, admission.resource, target)))
        obj = None if admission.object is None else next(forms)
        old = None if admission.old is None else next(forms)
        uid = self._entropy.uid()
        review = request_review(admission, target, uid, obj=obj, old=old)
        return uid, call_of(webhook.client_config, review, webhook.timeout_seconds, self._find_service)
