"""The assignment of validation rules to resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from konverge._internal.apply import ABSENT
from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.validation import (
    autoscalers,
    config_maps,
    custom_resource_definitions,
    networking,
    other_kinds,
    pod_updates,
    pods,
    quotas,
    roles,
    scheduling_classes,
    services,
    storage_kinds,
    webhooks,
    workloads,
)
from konverge_cluster._internal.embedded.validation.cel_rules import BLOCKING, UNCHECKED, has_cel_rules, validate_rules
from konverge_cluster._internal.embedded.validation.custom_resources import validate_scale, validate_value
from konverge_cluster._internal.embedded.validation.field_errors import FieldError, new_invalid
from konverge_cluster._internal.embedded.validation.metadata import validate_metadata, validate_metadata_update
from konverge_cluster._internal.embedded.validation.ratcheting import find_old_field

__all__ = ["check_create", "check_update"]

_RBAC = "rbac.authorization.k8s.io"
_DUPLICATE = "FieldValueDuplicate"

_RULES: dict[str, Callable[[Object], Iterator[FieldError]]] = {
    "configmaps": config_maps.validate_config_map,
    "events": other_kinds.validate_event,
    "nodes": other_kinds.validate_node,
    "secrets": config_maps.validate_secret,
    "pods": pods.validate_pod,
    "podtemplates": workloads.validate_bare_template,
    "replicationcontrollers": workloads.validate_replication_controller,
    "resourcequotas": quotas.validate_quota,
    "limitranges": quotas.validate_limit_range,
    "services": services.validate_service,
    "persistentvolumeclaims": storage_kinds.validate_claim,
    "persistentvolumes": storage_kinds.validate_volume,
    "deployments.apps": workloads.validate_deployment,
    "replicasets.apps": workloads.validate_replica_set,
    "daemonsets.apps": workloads.validate_daemon_set,
    "statefulsets.apps": workloads.validate_stateful_set,
    "controllerrevisions.apps": other_kinds.validate_controller_revision,
    "jobs.batch": workloads.validate_job,
    "cronjobs.batch": workloads.validate_cron_job,
    "horizontalpodautoscalers.autoscaling": autoscalers.validate_autoscaler,
    "poddisruptionbudgets.policy": other_kinds.validate_budget,
    "ingresses.networking.k8s.io": networking.validate_ingress,
    "ingressclasses.networking.k8s.io": networking.validate_ingress_class,
    "networkpolicies.networking.k8s.io": networking.validate_network_policy,
    "endpointslices.discovery.k8s.io": networking.validate_endpoint_slice,
    "leases.coordination.k8s.io": other_kinds.validate_lease,
    "storageclasses.storage.k8s.io": storage_kinds.validate_storage_class,
    "priorityclasses.scheduling.k8s.io": scheduling_classes.validate_priority_class,
    "runtimeclasses.node.k8s.io": scheduling_classes.validate_runtime_class,
    f"roles.{_RBAC}": roles.validate_role,
    f"clusterroles.{_RBAC}": roles.validate_cluster_role,
    f"rolebindings.{_RBAC}": roles.validate_role_binding,
    f"clusterrolebindings.{_RBAC}": roles.validate_cluster_role_binding,
    "customresourcedefinitions.apiextensions.k8s.io": custom_resource_definitions.validate_definition,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": webhooks.validate_webhook_configuration,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": webhooks.validate_webhook_configuration,
}
_UPDATE_RULES: dict[str, Callable[[Object, Object], Iterator[FieldError]]] = {
    "configmaps": config_maps.validate_configuration_update,
    "secrets": config_maps.validate_configuration_update,
    "pods": pod_updates.validate_pod_update,
    "services": services.validate_service_update,
    "persistentvolumeclaims": storage_kinds.validate_claim_update,
    "persistentvolumes": storage_kinds.validate_volume_update,
    "deployments.apps": workloads.validate_selector_update,
    "replicasets.apps": workloads.validate_selector_update,
    "daemonsets.apps": workloads.validate_selector_update,
    "statefulsets.apps": workloads.validate_stateful_set_update,
    "jobs.batch": workloads.validate_job_update,
    "priorityclasses.scheduling.k8s.io": scheduling_classes.validate_priority_class_update,
    "runtimeclasses.node.k8s.io": scheduling_classes.validate_runtime_class_update,
    f"rolebindings.{_RBAC}": roles.validate_binding_update,
    f"clusterrolebindings.{_RBAC}": roles.validate_binding_update,
    "customresourcedefinitions.apiextensions.k8s.io": custom_resource_definitions.validate_definition_update,
}


def check_create(resource: ServedResource, obj: Object, warnings: list[str]) -> None:
    """Validate a new object.

    Args:
        resource: The resource of the object.
        obj: The object.
        warnings: Receives the warnings of the validation.

    Raises:
        InvalidError: The object is invalid; the error contains all validation errors.
    """
    errors = [*validate_metadata(resource, obj), *_validate_object(resource, obj)]
    _raise_errors(resource, obj, _add_cel_errors(resource, obj, ABSENT, errors, warnings))


def check_update(
    resource: ServedResource, old: Object, new: Object, warnings: list[str], *, sent: Object, subresource: str = ""
) -> None:
    """Validate a changed object.

    For a subresource only the rules of metadata and the schema of a custom resource apply. Parts of a custom resource
    that the write does not change are not validated again.

    Args:
        resource: The resource of the object.
        old: The stored object.
        new: The object to store.
        warnings: Receives the warnings of the validation.
        sent: The object of the request, before the server restored the fields that the write cannot change.
        subresource: The subresource of the write.

    Raises:
        InvalidError: The object is invalid; the error contains all validation errors.
    """
    errors = [*validate_metadata_update(old, sent), *validate_metadata(resource, new)]
    if resource.is_custom:
        errors += _validate_custom_resource(resource, new, old, subresource)
    elif not subresource:
        errors += _validate_object(resource, new)
    if subresource == "status" and resource.storage == "services":
        errors += services.validate_service_status(new)
    if not subresource and resource.storage in _UPDATE_RULES:
        errors += _UPDATE_RULES[resource.storage](old, new)
    _raise_errors(resource, new, _add_cel_errors(resource, new, old, errors, warnings))


def _validate_custom_resource(resource: ServedResource, new: Object, old: Any, subresource: str) -> list[FieldError]:
    """Return the errors of a custom resource by its schema; a write of the status concerns nothing else.

    Args:
        resource: The resource of the object.
        new: The object to store.
        old: The stored object; `ABSENT` if it is new.
        subresource: The subresource of the write.
    """
    schema = resource.schema
    if subresource == "status":
        status, part = schema.find_child("status"), find_old_field(new, "status")
        errors = []
        if status is not None and part is not ABSENT:
            errors = list(validate_value(part, status, "status", find_old_field(old, "status")))
    else:
        errors = list(validate_value(new, schema, old=old))
    if old is not ABSENT and any(error.reason == _DUPLICATE for error in errors):
        before = validate_value(old, schema)
        if any(error.reason == _DUPLICATE for error in before):
            errors = [error for error in errors if error.reason != _DUPLICATE]
    scale = resource.scale
    if scale is not None:
        if subresource != "status":
            errors += validate_scale(new, scale.spec)
        errors += validate_scale(new, scale.status)
    return errors


def _add_cel_errors(
    resource: ServedResource, obj: Object, old: Any, errors: list[FieldError], warnings: list[str]
) -> list[FieldError]:
    """Add the errors of CEL rules if the object has the form that the rules expect."""
    if not resource.is_custom or not has_cel_rules(resource.schema):
        return errors
    if any(error.reason in BLOCKING for error in errors):
        return [*errors, UNCHECKED]
    return [*errors, *validate_rules(obj, old, resource.schema, warnings)]


def _validate_object(resource: ServedResource, obj: Object) -> Iterator[FieldError]:
    if resource.is_custom:
        return iter(_validate_custom_resource(resource, obj, ABSENT, ""))
    rules = _RULES.get(resource.storage)
    return rules(obj) if rules is not None else iter(())


def _raise_errors(resource: ServedResource, obj: Object, errors: list[FieldError]) -> None:
    if errors:
        raise new_invalid(resource.gvk.group, resource.gvk.kind, obj["metadata"].get("name", ""), errors)
