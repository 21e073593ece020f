"""Which rules an object is held to, by the resource that stores it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from konverge.apply import ABSENT
from konverge.kube import Object
from konverge.localcluster.resources import Resource
from konverge.localcluster.validation import (
    configuration,
    definitions,
    pods,
    policies,
    services,
    webhooks,
    workloads,
)
from konverge.localcluster.validation.metadata import metadata_mistakes, metadata_update_mistakes
from konverge.localcluster.validation.mistakes import Mistake, refusal
from konverge.localcluster.validation.schema import scale_mistakes, schema_mistakes
from konverge.localcluster.validation.stated_rules import BLOCKING, UNCHECKED, rule_mistakes, states_rules

__all__ = ["check_create", "check_update"]

_RBAC = "rbac.authorization.k8s.io"

_RULES: dict[str, Callable[[Object], Iterator[Mistake]]] = {
    "configmaps": configuration.config_map_mistakes,
    "secrets": configuration.secret_mistakes,
    "pods": pods.pod_mistakes,
    "services": services.service_mistakes,
    "persistentvolumeclaims": policies.claim_mistakes,
    "persistentvolumes": policies.volume_mistakes,
    "deployments.apps": workloads.deployment_mistakes,
    "replicasets.apps": workloads.replica_set_mistakes,
    "daemonsets.apps": workloads.daemon_set_mistakes,
    "statefulsets.apps": workloads.stateful_set_mistakes,
    "controllerrevisions.apps": policies.revision_mistakes,
    "jobs.batch": workloads.job_mistakes,
    "cronjobs.batch": workloads.cron_job_mistakes,
    "horizontalpodautoscalers.autoscaling": policies.autoscaler_mistakes,
    "poddisruptionbudgets.policy": policies.budget_mistakes,
    "ingresses.networking.k8s.io": policies.ingress_mistakes,
    "networkpolicies.networking.k8s.io": policies.network_policy_mistakes,
    "endpointslices.discovery.k8s.io": policies.slice_mistakes,
    "leases.coordination.k8s.io": policies.lease_mistakes,
    "storageclasses.storage.k8s.io": policies.storage_class_mistakes,
    f"roles.{_RBAC}": policies.role_mistakes,
    f"clusterroles.{_RBAC}": policies.role_mistakes,
    f"rolebindings.{_RBAC}": policies.binding_mistakes,
    f"clusterrolebindings.{_RBAC}": policies.cluster_binding_mistakes,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.definition_mistakes,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhooks.webhook_mistakes,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": webhooks.webhook_mistakes,
}
_UPDATE_RULES: dict[str, Callable[[Object, Object], Iterator[Mistake]]] = {
    "configmaps": configuration.configuration_update_mistakes,
    "secrets": configuration.configuration_update_mistakes,
    "pods": pods.pod_update_mistakes,
    "services": services.service_update_mistakes,
    "persistentvolumeclaims": policies.claim_update_mistakes,
    "persistentvolumes": policies.volume_update_mistakes,
    "deployments.apps": workloads.selector_update_mistakes,
    "replicasets.apps": workloads.selector_update_mistakes,
    "daemonsets.apps": workloads.selector_update_mistakes,
    "statefulsets.apps": workloads.stateful_set_update_mistakes,
    "jobs.batch": workloads.job_update_mistakes,
    f"rolebindings.{_RBAC}": policies.binding_update_mistakes,
    f"clusterrolebindings.{_RBAC}": policies.binding_update_mistakes,
    "customresourcedefinitions.apiextensions.k8s.io": definitions.definition_update_mistakes,
}


def check_create(resource: Resource, obj: Object) -> None:
    """Hold a new object to the rules.

    Raises:
        InvalidError: It breaks some; all of them are told.
    """
    mistakes = [*metadata_mistakes(resource, obj), *_object_mistakes(resource, obj)]
    _refuse(resource, obj, _with_stated_rules(resource, obj, ABSENT, mistakes))


def check_update(resource: Resource, old: Object, new: Object, *, sent: Object, subresource: str = "") -> None:
    """Hold a changed object to the rules.

    A write of a subresource is held only to those of metadata, and to the schema of a custom resource.

    Args:
        resource: What it is.
        old: The object as stored.
        new: The object as it is to be stored.
        sent: The object as the client wants it, before the server kept what the write may not change.
        subresource: What part of it is written.

    Raises:
        InvalidError: It breaks some; all of them are told.
    """
    mistakes = [*metadata_update_mistakes(old, sent), *metadata_mistakes(resource, new)]
    if not subresource or resource.is_custom:
        mistakes += _object_mistakes(resource, new)
    if subresource == "status" and resource.storage == "services":
        mistakes += services.service_status_mistakes(new)
    if not subresource and resource.storage in _UPDATE_RULES:
        mistakes += _UPDATE_RULES[resource.storage](old, new)
    _refuse(resource, new, _with_stated_rules(resource, new, old, mistakes))


def _with_stated_rules(resource: Resource, obj: Object, old: Any, mistakes: list[Mistake]) -> list[Mistake]:
    """The mistakes, and those that the definition's own rules find in an object which they can speak of."""
    if not resource.is_custom or not states_rules(resource.schema):
        return mistakes
    if any(mistake.reason in BLOCKING for mistake in mistakes):
        return [*mistakes, UNCHECKED]
    return [*mistakes, *rule_mistakes(obj, old, resource.schema)]


def _object_mistakes(resource: Resource, obj: Object) -> Iterator[Mistake]:
    if resource.is_custom:
        scaled = () if resource.scale is None else scale_mistakes(obj, resource.scale.spec)
        return chain(schema_mistakes(obj, resource.schema), scaled)
    rules = _RULES.get(resource.storage)
    return rules(obj) if rules is not None else iter(())


def _refuse(resource: Resource, obj: Object, mistakes: list[Mistake]) -> None:
    if mistakes:
        raise refusal(resource.gvk.group, resource.gvk.kind, obj["metadata"].get("name", ""), mistakes)
