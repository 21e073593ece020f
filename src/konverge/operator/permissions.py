"""What an operator may have to be allowed, derived from what it declares: rules, and the manifests that grant them.

In goes a `Declaration`: the custom resources, what builds their components, what is watched, what its author says that
it uses besides. Components are made by functions of an owner, so they are built for sample owners that differ in
whatever the schema says can differ; the verbs are those that the engine sends for each option (`konverge.component`).
What could not be found out is told (`Permissions.gaps`), never assumed.

Everything here is pure but for the functions of the author's that it calls, and the same declaration gives the same
bytes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from konverge.apply import builtin_schema
from konverge.clock import Clock, SystemClock
from konverge.component import Component
from konverge.component.options import Mode
from konverge.crd import decode, definition_of, sample_objects
from konverge.errors import DecodeError, describe
from konverge.kube import GroupVersionKind, Object
from konverge.operator.policy_rules import READ, WRITE, PolicyRule, Scope, Use, plural_by_rule, rules_of
from konverge.operator.reconciling import built

__all__ = [
    "Declaration",
    "DeclaredOwner",
    "Facilities",
    "Permissions",
    "permissions_of",
]

FACTORY_SECONDS = 30.0
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
class Declaration:
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
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class Facilities:
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
class Permissions:
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


def permissions_of(
    declaration: Declaration,
    facilities: Facilities | None = None,
    *,
    samples: Sequence[Object] = (),
    clock: Clock | None = None,
) -> Permissions:
    """The least that the operator needs.

    The author's functions that build components run, for up to `konverge.crd.samples.DEFAULT_LIMIT` sample owners of
    each class; one that fails for a sample is passed over, and after `FACTORY_SECONDS` no further one is called.

    Args:
        declaration: The operator.
        facilities: How it runs.
        samples: More objects to build components for, where those made from the schema do not show everything.
        clock: Measures how long the functions take.
    """
    clock = clock or SystemClock()
    ends = clock.monotonic() + FACTORY_SECONDS
    gaps: list[str] = []
    own = {definition_of(owner.cls).gvk: Use.of(owner.cls, READ) for owner in declaration.owners}
    uses = [*_runtime_uses(declaration, facilities or Facilities()), *declaration.uses]
    uses += (own.get(gvk) or Use.of(gvk, READ) for gvk in declaration.watched)
    found = list(declaration.watched)
    for owner in declaration.owners:
        uses += _owner_uses(owner)
        for gvk, use in _component_uses(owner, samples, gaps, lambda: clock.monotonic() < ends):
            found.append(gvk)
            uses.append(replace(own[gvk], verbs=use.verbs) if gvk in own else use)
        if not owner.factories and not declaration.uses:
            gaps.append(
                f"{owner.cls.__name__} has a reconcile function of its own, and what that uses cannot be seen: "
                "declare it with operator.uses(...)"
            )
    gaps += _kind_gaps(dict.fromkeys(gvk for gvk in found if gvk not in own), uses)
    by_scope = {scope: rules_of(use for use in uses if use.scope is scope) for scope in Scope}
    return Permissions(
        by_scope[Scope.OWNERS], by_scope[Scope.CLUSTER], by_scope[Scope.HOME], tuple(dict.fromkeys(gaps))
    )


def _runtime_uses(declaration: Declaration, facilities: Facilities) -> Iterator[Use]:
    definitions = [definition_of(owner.cls) for owner in declaration.owners]
    if facilities.records_events:
        # Of an owner without a namespace, the events are in "default": a role in the owners' namespaces would not do.
        everywhere = any(not definition.namespaced for definition in definitions)
        yield Use("events.k8s.io", "events", ("create", "patch"), Scope.CLUSTER if everywhere else Scope.OWNERS)
    if facilities.elects_leader:
        yield from _kept_by_name("coordination.k8s.io", "leases", facilities.lease or declaration.name)
    if facilities.shards:
        # The Leases of members are called by hashes of identities that nobody knows beforehand.
        yield Use("coordination.k8s.io", "leases", ("create", "delete", "get", "list", "update"), Scope.HOME)
    if facilities.certificate_secret:
        yield from _kept_by_name("", "secrets", facilities.certificate_secret)
    if facilities.authenticates_metrics:
        yield Use("authentication.k8s.io", "tokenreviews", ("create",), Scope.CLUSTER)
        yield Use("authorization.k8s.io", "subjectaccessreviews", ("create",), Scope.CLUSTER)
    if facilities.registers_webhooks:
        for resource in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
            group, named = "admissionregistration.k8s.io", (declaration.name,)
            yield Use(group, resource, ("create",), Scope.CLUSTER)
            yield Use(group, resource, ("delete", "get", "patch"), Scope.CLUSTER, named)
    if facilities.registers_webhooks or facilities.installs_definitions:
        names = tuple(definition.name for definition in definitions)
        resource = "customresourcedefinitions"
        yield Use("apiextensions.k8s.io", resource, ("get", "patch"), Scope.CLUSTER, names)
        if facilities.installs_definitions:
            yield Use("apiextensions.k8s.io", resource, ("create",), Scope.CLUSTER)


def _kept_by_name(group: str, resource: str, name: str) -> Iterator[Use]:
    """One object of the operator's own namespace; the server does not know a name yet when it judges a creation."""
    yield Use(group, resource, ("create",), Scope.HOME)
    yield Use(group, resource, ("get", "update"), Scope.HOME, (name,))


def _owner_uses(owner: DeclaredOwner) -> Iterator[Use]:
    yield Use.of(owner.cls, READ)
    yield Use.of(owner.cls, ("patch", "update"), subresource="status")
    # Owner references say blockOwnerDeletion: where the admission plug-in OwnerReferencesPermissionEnforcement is on
    # (as in OpenShift), only who may set the owner's finalizers may write that.
    yield Use.of(owner.cls, ("update",), subresource="finalizers")
    if owner.has_finalizer:
        yield Use.of(owner.cls, ("patch",))


def _component_uses(
    owner: DeclaredOwner, given: Sequence[Object], gaps: list[str], has_time: Callable[[], bool]
) -> list[tuple[GroupVersionKind, Use]]:
    definition = definition_of(owner.cls)
    if not owner.factories:
        return []
    made = sample_objects(definition)
    own = [obj for obj in given if (obj.get("apiVersion"), obj.get("kind")) == _type(definition.gvk)]
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
    uses: dict[tuple[GroupVersionKind, Use], None] = {}
    for factory in owner.factories:
        name = getattr(factory, "__name__", repr(factory))
        failures: list[str] = []
        for tried, instance in enumerate(readable):
            if not has_time():
                gaps.append(
                    f"{name} was called for {tried} of {len(readable)} sample objects of {definition.gvk.kind} only: "
                    f"building components took more than {FACTORY_SECONDS:g} s"
                )
                break
            try:
                answer = factory(instance)
                if mistake := _no_component(answer):  # for any owner: no sample could help
                    gaps.append(f"{name}: {mistake}")
                    break
                uses.update(dict.fromkeys(_uses_of(answer)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  # the author's code, for an owner that nobody made: sys.exit too
                failures.append(_first_line(error))
        if failures:
            gaps.append(
                f"{name} builds no component for {len(failures)} of {len(readable)} sample objects of "
                f"{definition.gvk.kind} ({failures[0]}); give a sample object for what it would use there"
            )
    return list(uses)


def _no_component(answer: object) -> str:
    """What is wrong with a factory that answers so; empty when nothing is."""
    if inspect.iscoroutine(answer):
        answer.close()
        return "it is a coroutine function, expected a plain one"
    try:
        built(answer)
    except TypeError as error:
        return str(error)
    return ""


def _first_line(error: BaseException) -> str:
    """What an error says, whatever the author made of its text."""
    lines = (line.strip() for line in describe(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def _uses_of(component: Component) -> Iterator[tuple[GroupVersionKind, Use]]:
    """What the engine does to the objects of one component."""
    for entry in component.entries:
        resource = entry.resource
        verbs: set[str] = set(READ)
        match entry.treatment.mode:
            case Mode.MANAGED:
                verbs.update(WRITE)
                if component.gate is not None or (resource.is_suspendable and resource.deletes_on_suspend):
                    verbs.add("delete")
            case Mode.DELETE:
                verbs.add("delete")
            case Mode.ORPHAN:
                verbs.add("update")
        scope = Scope.OWNERS if resource.key.namespace else Scope.CLUSTER
        yield resource.gvk, replace(Use.of(resource.gvk, sorted(verbs)), scope=scope)


def _kind_gaps(kinds: Iterable[GroupVersionKind], uses: Sequence[Use]) -> Iterator[str]:
    """What is to be known about kinds of which only the name is."""
    written = {(use.group, use.resource) for use in uses if {"create", "patch", "update"} & set(use.verbs)}
    for gvk in kinds:
        if builtin_schema(gvk) is None:
            yield (
                f"{gvk} is not a built-in kind: its plural is taken to be {plural_by_rule(gvk)!r}, and if that is "
                "wrong, declare it with operator.uses(..., plural=...)"
            )
        if gvk.group == "rbac.authorization.k8s.io" and (gvk.group, plural_by_rule(gvk)) in written:
            yield (
                f"{gvk} grants rights, and the API server lets nobody grant what he has not himself: "
                "declare those with operator.uses(...)"
            )


def _type(gvk: GroupVersionKind) -> tuple[str, str]:
    return gvk.api_version, gvk.kind
