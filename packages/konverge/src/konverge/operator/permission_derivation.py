"""What an operator may have to be allowed, derived from what it declares: rules, and the manifests that grant them.

In goes a `OperatorDeclaration`: the custom resources, what builds their components, what is watched, what its author
says that
it uses besides. Components are made by functions of an owner, so they are built for sample owners that differ in
whatever the schema says can differ; the verbs are those that the engine sends for each option (`konverge.component`).
What could not be found out is told (`RequiredPermissions.gaps`), never assumed.

Everything here is pure but for the functions of the author's that it calls, and the same declaration gives the same
bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from konverge.apply import find_builtin_schema
from konverge.clock import Clock, SystemClock
from konverge.component import Component
from konverge.component.resource_options import ResourceMode
from konverge.crd import build_sample_objects, decode, find_definition
from konverge.errors import DecodeError, format_error
from konverge.kube import GroupVersionKind, Object
from konverge.operator.component_factories import build_component
from konverge.operator.rbac_rules import READ, WRITE, AccessScope, PolicyRule, ResourceAccess, build_rules, guess_plural

__all__ = [
    "DeclaredOwner",
    "OperatorDeclaration",
    "RequiredPermissions",
    "RuntimeFeatures",
    "derive_permissions",
]

MAX_FACTORY_SECONDS = 30.0
"""How long the author's functions may take, all of them together; one that never returns is the caller's to end."""


@dataclass(frozen=True, slots=True)
class DeclaredOwner:
    """A custom resource and how it is looked after.

    Args:
        cls: The class.
        factories: What builds the components (`Operator.manages`); empty for an author's own reconcile function, of
            which nothing can be known.
        has_finalizer: Whether owners get a finalizer of the operator's.
    """

    cls: type[Any]
    factories: tuple[Any, ...] = ()
    has_finalizer: bool = False


@dataclass(frozen=True, slots=True)
class OperatorDeclaration:
    """What an operator says of itself.

    Args:
        name: The operator's name.
        owners: What it looks after.
        watched: Kinds that it watches besides.
        uses: What its author says that it uses, where that cannot be derived.
    """

    name: str
    owners: tuple[DeclaredOwner, ...] = ()
    watched: tuple[GroupVersionKind, ...] = ()
    uses: tuple[ResourceAccess, ...] = ()


@dataclass(frozen=True, slots=True)
class RuntimeFeatures:
    """What of the runtime's own needs permissions.

    Args:
        records_events: It records events.
        elects_leader: One of several replicas works.
        shards: Several replicas divide the owners.
        lease: What the Lease of an election is called, and what those of shards begin with; the operator's name when
            empty.
        authenticates_metrics: Who reads metrics is asked for a token.
        registers_webhooks: It tells the API server of its webhooks itself.
        installs_definitions: It applies its own CustomResourceDefinitions.
        certificate_secret: The name of the Secret of its own namespace in which it keeps the certificate of its
            webhooks; empty when it keeps none there.
    """

    records_events: bool = True
    elects_leader: bool = False
    shards: bool = False
    lease: str = ""
    authenticates_metrics: bool = False
    registers_webhooks: bool = False
    installs_definitions: bool = False
    certificate_secret: str = ""


@dataclass(frozen=True, slots=True)
class RequiredPermissions:
    """What an operator needs.

    Args:
        rules: In the namespaces of the owners.
        cluster_rules: About kinds without a namespace.
        home_rules: In the operator's own namespace.
        gaps: What could not be found out; a sentence each.
    """

    rules: tuple[PolicyRule, ...]
    cluster_rules: tuple[PolicyRule, ...] = ()
    home_rules: tuple[PolicyRule, ...] = ()
    gaps: tuple[str, ...] = ()


def derive_permissions(
    declaration: OperatorDeclaration,
    features: RuntimeFeatures | None = None,
    *,
    samples: Sequence[Object] = (),
    clock: Clock | None = None,
) -> RequiredPermissions:
    """The least that the operator needs.

    The author's functions that build components run, for up to `konverge.crd.sample_objects.DEFAULT_LIMIT` sample
    owners of
    each class; one that fails for a sample is passed over, and after `MAX_FACTORY_SECONDS` no further one is called.

    Args:
        declaration: The operator.
        features: How it runs.
        samples: More objects to build components for, where those made from the schema do not show everything.
        clock: Measures how long the functions take.
    """
    clock = clock or SystemClock()
    ends = clock.monotonic() + MAX_FACTORY_SECONDS
    gaps: list[str] = []
    own = {find_definition(owner.cls).gvk: ResourceAccess.of(owner.cls, READ) for owner in declaration.owners}
    uses = [*_list_runtime_access(declaration, features or RuntimeFeatures()), *declaration.uses]
    uses += (own.get(gvk) or ResourceAccess.of(gvk, READ) for gvk in declaration.watched)
    found = list(declaration.watched)
    for owner in declaration.owners:
        uses += _list_owner_access(owner)
        for gvk, use in _list_component_access(owner, samples, gaps, lambda: clock.monotonic() < ends):
            found.append(gvk)
            uses.append(replace(own[gvk], verbs=use.verbs) if gvk in own else use)
        if not owner.factories and not declaration.uses:
            gaps.append(
                f"{owner.cls.__name__} has a reconcile function of its own, and what that uses cannot be seen: "
                "declare it with operator.uses(...)"
            )
    gaps += _describe_unknown_kinds(dict.fromkeys(gvk for gvk in found if gvk not in own), uses)
    by_scope = {scope: build_rules(use for use in uses if use.scope is scope) for scope in AccessScope}
    return RequiredPermissions(
        by_scope[AccessScope.OWNERS],
        by_scope[AccessScope.CLUSTER],
        by_scope[AccessScope.HOME],
        tuple(dict.fromkeys(gaps)),
    )


def _list_runtime_access(declaration: OperatorDeclaration, features: RuntimeFeatures) -> Iterator[ResourceAccess]:
    definitions = [find_definition(owner.cls) for owner in declaration.owners]
    if features.records_events:
        # Of an owner without a namespace, the events are in "default": a role in the owners' namespaces would not do.
        everywhere = any(not definition.namespaced for definition in definitions)
        yield ResourceAccess(
            "events.k8s.io", "events", ("create", "patch"), AccessScope.CLUSTER if everywhere else AccessScope.OWNERS
        )
    if features.elects_leader:
        yield from _list_named_access("coordination.k8s.io", "leases", features.lease or declaration.name)
    if features.shards:
        # The Leases of members are called by hashes of identities that nobody knows beforehand.
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
        names = tuple(definition.name for definition in definitions)
        resource = "customresourcedefinitions"
        yield ResourceAccess("apiextensions.k8s.io", resource, ("get", "patch"), AccessScope.CLUSTER, names)
        if features.installs_definitions:
            yield ResourceAccess("apiextensions.k8s.io", resource, ("create",), AccessScope.CLUSTER)


def _list_named_access(group: str, resource: str, name: str) -> Iterator[ResourceAccess]:
    """One object of the operator's own namespace; the server does not know a name yet when it judges a creation."""
    yield ResourceAccess(group, resource, ("create",), AccessScope.HOME)
    yield ResourceAccess(group, resource, ("get", "update"), AccessScope.HOME, (name,))


def _list_owner_access(owner: DeclaredOwner) -> Iterator[ResourceAccess]:
    yield ResourceAccess.of(owner.cls, READ)
    yield ResourceAccess.of(owner.cls, ("patch", "update"), subresource="status")
    # Owner references say blockOwnerDeletion: where the admission plug-in OwnerReferencesPermissionEnforcement is on
    # (as in OpenShift), only who may set the owner's finalizers may write that.
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
    own = [obj for obj in given if (obj.get("apiVersion"), obj.get("kind")) == _group_kind(definition.gvk)]
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
                if mistake := _describe_invalid_component(answer):  # for any owner: no sample could help
                    gaps.append(f"{name}: {mistake}")
                    break
                uses.update(dict.fromkeys(_iter_component_access(answer)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  # the author's code, for an owner that nobody made: sys.exit too
                failures.append(_format_first_line(error))
        if failures:
            gaps.append(
                f"{name} builds no component for {len(failures)} of {len(readable)} sample objects of "
                f"{definition.gvk.kind} ({failures[0]}); give a sample object for what it would use there"
            )
    return list(uses)


def _describe_invalid_component(answer: object) -> str:
    """What is wrong with a factory that answers so; empty when nothing is."""
    if inspect.iscoroutine(answer):
        answer.close()
        return "it is a coroutine function, expected a plain one"
    try:
        build_component(answer)
    except TypeError as error:
        return str(error)
    return ""


def _format_first_line(error: BaseException) -> str:
    """What an error says, whatever the author made of its text."""
    lines = (line.strip() for line in format_error(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def _iter_component_access(component: Component) -> Iterator[tuple[GroupVersionKind, ResourceAccess]]:
    """What the engine does to the objects of one component."""
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
        scope = AccessScope.OWNERS if resource.key.namespace else AccessScope.CLUSTER
        yield resource.gvk, replace(ResourceAccess.of(resource.gvk, sorted(verbs)), scope=scope)


def _describe_unknown_kinds(kinds: Iterable[GroupVersionKind], uses: Sequence[ResourceAccess]) -> Iterator[str]:
    """What is to be known about kinds of which only the name is."""
    written = {(use.group, use.resource) for use in uses if {"create", "patch", "update"} & set(use.verbs)}
    for gvk in kinds:
        if find_builtin_schema(gvk) is None:
            yield (
                f"{gvk} is not a built-in kind: its plural is taken to be {guess_plural(gvk)!r}, and if that is "
                "wrong, declare it with operator.uses(..., plural=...)"
            )
        if gvk.group == "rbac.authorization.k8s.io" and (gvk.group, guess_plural(gvk)) in written:
            yield (
                f"{gvk} grants rights, and the API server lets nobody grant what he has not himself: "
                "declare those with operator.uses(...)"
            )


def _group_kind(gvk: GroupVersionKind) -> tuple[str, str]:
    return gvk.api_version, gvk.kind
