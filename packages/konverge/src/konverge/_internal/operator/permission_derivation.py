"""Derivation of the permissions of an operator from its declaration.

The input is an `OperatorDeclaration`: the custom resources, their component factories, the watched kinds and the access
that the author declares. Factories need an owner, so components are built for sample owners that vary every variable
part of the schema. The verbs are those that the engine sends for each option (`konverge.component`). The access of an
author's functions comes from a run that konverge-cluster observed. Permissions that cannot be derived are reported
(`RequiredPermissions.gaps`), never assumed.

The module is pure except for the author functions that it calls; the same declaration gives the same bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from konverge._internal.apply import find_builtin_schema
from konverge._internal.component import Component
from konverge._internal.component.diagnosis import CLAIM, EVENT, POD, WORKLOADS, is_examined
from konverge._internal.component.resource_options import ResourceMode
from konverge._internal.crd import build_sample_objects, decode, find_definition
from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.operator.component_factories import build_component
from konverge._internal.operator.observed_access import Observation, ObservedAccess, find_undeclared_access
from konverge._internal.operator.rbac_rules import (
    READ,
    WRITE,
    AccessScope,
    PolicyRule,
    ResourceAccess,
    build_rules,
    guess_plural,
)
from konverge.clock import Clock, SystemClock
from konverge.errors import DecodeError, format_error

__all__ = [
    "DeclaredOwner",
    "OperatorDeclaration",
    "RequiredPermissions",
    "RuntimeFeatures",
    "derive_permissions",
]

MAX_FACTORY_SECONDS = 30.0
"""Time limit for all author functions together; the caller must interrupt one that never returns."""


@dataclass(frozen=True, slots=True)
class DeclaredOwner:
    """A custom resource and its reconcile.

    Args:
        cls: The class.
        factories: The component factories (`Operator.manages`); empty for an author's reconcile function, whose access
            cannot be derived.
        has_finalizer: True if owners get a finalizer of the operator.
        functions: The names of the author's functions among the factories, whose access cannot be derived.
    """

    cls: type[Any]
    factories: tuple[Any, ...] = ()
    has_finalizer: bool = False
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorDeclaration:
    """The declaration of an operator.

    Args:
        name: The operator's name.
        owners: The custom resources that it reconciles.
        watched: The additional watched kinds.
        uses: The access that the author declares.
    """

    name: str
    owners: tuple[DeclaredOwner, ...] = ()
    watched: tuple[GroupVersionKind, ...] = ()
    uses: tuple[ResourceAccess, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeFeatures:
    """The features of the runtime that require permissions.

    Args:
        records_events: The operator records events.
        diagnoses: The operator examines the pods, claims and events of late workloads.
        elects_leader: One of several replicas is active.
        shards: Several replicas divide the owners.
        lease: The name of the Lease of an election, and the prefix of the Leases of shards (default: the operator's
            name).
        authenticates_metrics: Metrics clients must send a token.
        registers_webhooks: The operator registers its webhooks with the API server.
        installs_definitions: The operator applies its own CustomResourceDefinitions.
        certificate_secret: The name of the Secret in the operator's namespace with the certificate of its webhooks;
            empty without such a Secret.
    """

    records_events: bool = True
    diagnoses: bool = True
    elects_leader: bool = False
    shards: bool = False
    lease: str = ""
    authenticates_metrics: bool = False
    registers_webhooks: bool = False
    installs_definitions: bool = False
    certificate_secret: str = ""


@dataclass(frozen=True, slots=True)
class RequiredPermissions:
    """The permissions that an operator requires.

    Args:
        rules: The rules in the namespaces of the owners.
        cluster_rules: The rules for cluster-scoped kinds.
        home_rules: The rules in the operator's own namespace.
        gaps: The permissions that could not be derived, one sentence each.
        other_rules: The rules in other namespaces that functions of the author used, by namespace.
        observed: The access in the rules that is only known from a run.
    """

    rules: tuple[PolicyRule, ...]
    cluster_rules: tuple[PolicyRule, ...] = ()
    home_rules: tuple[PolicyRule, ...] = ()
    gaps: tuple[str, ...] = ()
    other_rules: tuple[tuple[str, tuple[PolicyRule, ...]], ...] = ()
    observed: tuple[ObservedAccess, ...] = ()


def derive_permissions(
    declaration: OperatorDeclaration,
    features: RuntimeFeatures | None = None,
    *,
    samples: Sequence[Object] = (),
    observation: Observation | None = None,
    clock: Clock | None = None,
) -> RequiredPermissions:
    """Derive the minimal permissions of the operator.

    The component factories run for up to `crd.sample_objects.DEFAULT_LIMIT` sample owners of each class. A
    factory that fails for a sample is skipped for it; after `MAX_FACTORY_SECONDS`, no factory is called any more.

    Args:
        declaration: The operator.
        features: The features of the run.
        samples: Additional owners for the factories, if the samples from the schema are not sufficient.
        observation: A run of the author's functions; None without one.
        clock: The clock that measures the duration of the factories.
    """
    clock = clock or SystemClock()
    ends = clock.monotonic() + MAX_FACTORY_SECONDS
    gaps: list[str] = []
    own = {find_definition(owner.cls).gvk: ResourceAccess.of(owner.cls, READ) for owner in declaration.owners}
    features = features or RuntimeFeatures()
    uses = [*_list_runtime_access(declaration, features), *declaration.uses]
    uses += (own.get(gvk) or ResourceAccess.of(gvk, READ) for gvk in declaration.watched)
    kinds = list(declaration.watched)
    for owner in declaration.owners:
        uses += _list_owner_access(owner)
        for gvk, use in _list_component_access(owner, samples, gaps, lambda: clock.monotonic() < ends):
            kinds.append(gvk)
            uses.append(replace(own[gvk], verbs=use.verbs) if gvk in own else use)
        if observation is None and not declaration.uses and (owner.functions or not owner.factories):
            gaps.append(
                f"{owner.cls.__name__}: the access of {', '.join(owner.functions) or 'its reconcile function'} cannot "
                "be derived without a run: declare it with operator.uses(...), as konverge rbac prints it"
            )
    observed = () if observation is None else tuple(find_undeclared_access(observation.accesses, uses))
    written = [*declaration.uses, *(access.to_access() for access in observed)]
    uses += (access.to_access() for access in observed)
    if observation is not None and not declaration.uses:
        gaps += observation.gaps
    if features.diagnoses:
        for gvk in dict.fromkeys((*kinds[len(declaration.watched) :], *_list_applied_kinds(written))):
            uses += _list_diagnosis_access(gvk)
    gaps += _describe_unknown_kinds(dict.fromkeys(gvk for gvk in kinds if gvk not in own), uses)
    by_scope = {scope: build_rules(use for use in uses if use.scope is scope) for scope in AccessScope}
    others = sorted({use.namespace for use in uses if use.scope is AccessScope.NAMESPACE})
    return RequiredPermissions(
        by_scope[AccessScope.OWNERS],
        by_scope[AccessScope.CLUSTER],
        by_scope[AccessScope.HOME],
        tuple(dict.fromkeys(gaps)),
        tuple((name, build_rules(use for use in uses if use.namespace == name)) for name in others),
        observed,
    )


def _list_runtime_access(declaration: OperatorDeclaration, features: RuntimeFeatures) -> Iterator[ResourceAccess]:
    definitions = [find_definition(owner.cls) for owner in declaration.owners]
    if features.records_events:
        # Events of a cluster-scoped owner are in "default": a Role in the owners' namespaces would not be sufficient.
        everywhere = any(not definition.namespaced for definition in definitions)
        yield ResourceAccess(
            "events.k8s.io", "events", ("create", "patch"), AccessScope.CLUSTER if everywhere else AccessScope.OWNERS
        )
    if features.elects_leader:
        yield from _list_named_access("coordination.k8s.io", "leases", features.lease or declaration.name)
    if features.shards:
        # The names of the members' Leases are hashes of identities that are not known in advance.
        yield ResourceAccess(
            "coordination.k8s.io", "leases", ("create", "delete", "get", "list", "update"), AccessScope.HOME
        )
    if features.certificate_secret:
        yield from _list_named_access("", "secrets", features.certificate_secret)
    if features.authenticates_metrics:
        yield ResourceAccess("authentication.k8s.io", "tokenreviews", ("create",), AccessScope.CLUSTER)
        yield ResourceAccess("authorization.k8s.io", "subjectaccessreviews", ("create",), AccessScope.CLUSTER)
    if features.registers_webhooks:
        for resource in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            group, named = "admissionregistration.k8s.io", (declaration.name,)
            yield ResourceAccess(group, resource, ("create",), AccessScope.CLUSTER)
            yield ResourceAccess(group, resource, ("delete", "get", "patch"), AccessScope.CLUSTER, named)
    if features.registers_webhooks or features.installs_definitions:
        names = tuple(definition.name for definition in definitions if not definition.is_external)
        resource = "customresourcedefinitions"
        if names:
            yield ResourceAccess("apiextensions.k8s.io", resource, ("get", "patch"), AccessScope.CLUSTER, names)
        if names and features.installs_definitions:
            yield ResourceAccess("apiextensions.k8s.io", resource, ("create",), AccessScope.CLUSTER)


def _list_diagnosis_access(gvk: GroupVersionKind) -> Iterator[ResourceAccess]:
    """Yield the access to examine a late object of a kind (`component.diagnosis`); nothing for most kinds."""
    if not is_examined(gvk):
        return
    yield ResourceAccess.of(EVENT, ("list",))
    if gvk != CLAIM:
        yield ResourceAccess.of(CLAIM, ("get",))
    if gvk in WORKLOADS:
        yield ResourceAccess.of(POD, ("list",))


def _list_applied_kinds(uses: Iterable[ResourceAccess]) -> Iterator[GroupVersionKind]:
    """Yield the examined kinds that the author declares to apply."""
    applied = {(use.group, use.resource) for use in uses if "patch" in use.verbs}
    return (gvk for gvk in (*WORKLOADS, POD, CLAIM) if (gvk.group, guess_plural(gvk)) in applied)


def _list_named_access(group: str, resource: str, name: str) -> Iterator[ResourceAccess]:
    """Yield the access to one object in the operator's namespace; RBAC cannot restrict a creation to a name."""
    yield ResourceAccess(group, resource, ("create",), AccessScope.HOME)
    yield ResourceAccess(group, resource, ("get", "update"), AccessScope.HOME, (name,))


def _list_owner_access(owner: DeclaredOwner) -> Iterator[ResourceAccess]:
    yield ResourceAccess.of(owner.cls, READ)
    if find_definition(owner.cls).has_own_status:
        yield ResourceAccess.of(owner.cls, ("patch", "update"), subresource="status")
    else:  # the conditions are in an annotation
        yield ResourceAccess.of(owner.cls, ("patch",))
    # Owner references have blockOwnerDeletion: with the admission plug-in OwnerReferencesPermissionEnforcement (as in
    # OpenShift), writing it requires the permission to update the owner's finalizers.
    yield ResourceAccess.of(owner.cls, ("update",), subresource="finalizers")
    if owner.has_finalizer:
        yield ResourceAccess.of(owner.cls, ("patch",))


def _list_component_access(
    owner: DeclaredOwner, given: Sequence[Object], gaps: list[str], has_time: Callable[[], bool]
) -> list[tuple[GroupVersionKind, ResourceAccess]]:
    definition = find_definition(owner.cls)
    if not owner.factories:
        return []
    made = build_sample_objects(definition)
    own = [
        _complete_namespace(obj) if definition.namespaced else obj
        for obj in given
        if (obj.get("apiVersion"), obj.get("kind")) == _group_kind(definition.gvk)
    ]
    if not own:
        gaps += (f"{definition.gvk.kind} {gap}; give a sample object that has one" for gap in made.gaps)
    readable: list[Any] = []
    refused = ""
    for obj in (*own, *made.objects):
        try:
            readable.append(decode(owner.cls, obj))
        except DecodeError as error:
            refused = error.problem
    if not readable:
        gaps.append(f"{definition.gvk.kind} accepts none of its sample objects ({refused}); give a sample object")
    uses: dict[tuple[GroupVersionKind, ResourceAccess], None] = {}
    for factory in owner.factories:
        name = getattr(factory, "__name__", repr(factory))
        failures: list[str] = []
        for tried, instance in enumerate(readable):
            if not has_time():
                gaps.append(
                    f"{name} was called for {tried} of {len(readable)} sample objects of {definition.gvk.kind} only: "
                    f"building components took more than {MAX_FACTORY_SECONDS:g} s"
                )
                break
            try:
                answer = factory(instance)
                if mistake := _describe_invalid_component(answer):  # the same for every owner
                    gaps.append(f"{name}: {mistake}")
                    break
                uses.update(dict.fromkeys(_iter_component_access(answer)))
                if answer.has_deletion_waves:
                    uses[definition.gvk, ResourceAccess.of(owner.cls, ("patch",))] = None  # its finalizer
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  # author code with a generated owner: sys.exit too
                failures.append(_format_first_line(error))
        if failures:
            gaps.append(
                f"{name} builds no component for {len(failures)} of {len(readable)} sample objects of "
                f"{definition.gvk.kind} ({failures[0]}); give a sample object for what it would use there"
            )
    return list(uses)


def _describe_invalid_component(answer: object) -> str:
    """Describe the error in the result of a factory; empty for a component."""
    if inspect.iscoroutine(answer):
        answer.close()
        return "it is a coroutine function, expected a plain one"
    try:
        build_component(answer)
    except TypeError as error:
        return str(error)
    return ""


def _format_first_line(error: BaseException) -> str:
    """Return the first line of an error with text; author code can raise errors with any text."""
    lines = (line.strip() for line in format_error(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def _iter_component_access(component: Component) -> Iterator[tuple[GroupVersionKind, ResourceAccess]]:
    """Yield the access of the engine to the objects of one component."""
    for entry in component.entries:
        resource = entry.resource
        verbs: set[str] = set(READ)
        match entry.treatment.mode:
            case ResourceMode.MANAGED:
                verbs.update(WRITE)
                if component.gate is not None or (resource.is_suspendable and resource.deletes_on_suspend):
                    verbs.add("delete")
            case ResourceMode.DELETE:
                verbs.add("delete")
            case ResourceMode.ORPHAN:
                verbs.add("update")
        if entry.treatment.deletion_wave is not None:
            verbs.add("delete")
        scope = AccessScope.OWNERS if resource.key.namespace else AccessScope.CLUSTER
        yield resource.gvk, replace(ResourceAccess.of(resource.gvk, sorted(verbs)), scope=scope)


def _describe_unknown_kinds(kinds: Iterable[GroupVersionKind], uses: Sequence[ResourceAccess]) -> Iterator[str]:
    """Yield a sentence for each kind whose plural or permissions are uncertain."""
    written = {(use.group, use.resource) for use in uses if {"create", "patch", "update"} & set(use.verbs)}
    for gvk in kinds:
        if find_builtin_schema(gvk) is None:
            yield (
                f"{gvk} is not a built-in kind: its plural is assumed to be {guess_plural(gvk)!r}; if that is "
                "wrong, declare it with operator.uses(..., plural=...)"
            )
        if gvk.group == "rbac.authorization.k8s.io" and (gvk.group, guess_plural(gvk)) in written:
            yield (
                f"{gvk} grants permissions, and the API server requires that the operator has them itself: "
                "declare them with operator.uses(...)"
            )


def _complete_namespace(obj: Object) -> Object:
    """Return the object with a namespace: its components would seem to have cluster-scoped objects without one."""
    return {**obj, "metadata": {"namespace": "default", **(obj.get("metadata") or {})}}


def _group_kind(gvk: GroupVersionKind) -> tuple[str, str]:
    return gvk.api_version, gvk.kind
