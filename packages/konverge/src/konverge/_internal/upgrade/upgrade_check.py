"""The check of an upgrade: reads and dry runs against a cluster that an older version of the operator has written.

The parts are independent: one that cannot be read becomes an entry of `UpgradeReport.not_checked`; the others go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from konverge._internal.cache import CacheOptions
from konverge._internal.client import Client
from konverge._internal.component.immutable_fields import is_immutability_error
from konverge._internal.crd import crd_manifest, find_definition
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.operator import Operator
from konverge._internal.operator.dry_run import OwnerDryRun, dry_run_owner
from konverge._internal.operator.observed_access import Observation
from konverge._internal.operator.permission_derivation import RequiredPermissions, RuntimeFeatures, derive_permissions
from konverge._internal.operator.registrations import OwnerRegistration
from konverge._internal.upgrade.definition_diff import (
    diff_definitions,
    list_stored_versions,
    list_versions,
    storage_version,
)
from konverge._internal.upgrade.findings import (
    DefinitionReport,
    Finding,
    OwnerChanges,
    OwnersReport,
    PermissionsReport,
    UpgradeReport,
)
from konverge._internal.upgrade.object_check import ObjectChecker, build_validator
from konverge._internal.upgrade.permission_diff import compare_permissions, read_granted_rules
from konverge._internal.upgrade.upgraded_client import UpgradedClient
from konverge.clock import Clock
from konverge.errors import (
    ConfigurationError,
    ConnectionFailedError,
    DecodeError,
    InvalidError,
    KonvergeError,
    NotFoundError,
    UnauthorizedError,
    format_error,
    iter_causes,
)

__all__ = ["CheckLimits", "UpgradeCheck"]

DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
# The field manager of `konverge run --install-crds`.
_FIELD_MANAGER = "konverge-run"
_PAGE = 500
_MAX_ERRORS = 5

# The features of `konverge run` with an option of their own.
_EVERY_FEATURE = RuntimeFeatures(
    elects_leader=True,
    shards=True,
    authenticates_metrics=True,
    registers_webhooks=True,
    installs_definitions=True,
)


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """The limits of a check.

    Args:
        max_objects: The number of objects of each kind that are validated.
        max_owners: The number of owners whose reconcile is tried.
        seconds: The time after which no further object or owner is begun.
    """

    max_objects: int
    max_owners: int
    seconds: float


@dataclass(slots=True)
class _KindState:
    """What the check of a definition leaves for the dry runs of its owners."""

    read_gvk: GroupVersionKind | None
    checker: ObjectChecker | None = None


@dataclass
class UpgradeCheck:
    """One check of one operator in one cluster.

    Args:
        client: The cluster; it gets reads, and applies with dry run.
        operator: The new version of the operator.
        account: The ServiceAccount of the operator in the cluster.
        limits: The limits.
        clock: The time.
        namespace: The namespace of the owners; empty for all.
        observation: A run of the author's functions, as for ``konverge rbac``; None without one.
    """

    client: Client
    operator: Operator
    account: ObjectKey
    limits: CheckLimits
    clock: Clock
    namespace: str = ""
    observation: Observation | None = None
    failures: list[BaseException] = field(default_factory=list, init=False)
    _not_checked: list[str] = field(default_factory=list, init=False)
    _kinds: dict[GroupVersionKind, _KindState] = field(default_factory=dict, init=False)
    _ends: float = field(default=0.0, init=False)

    async def run(self) -> UpgradeReport:
        """Return the report; `failures` has the errors of parts that could not be checked.

        Raises:
            konverge.errors.ConnectionFailedError: The cluster cannot be reached.
            konverge.errors.UnauthorizedError: The cluster rejects the credentials.
            konverge.errors.BuildError: A conversion of the operator is incomplete.
        """
        self._ends = self.clock.monotonic() + self.limits.seconds
        definitions = tuple([await self._check_definition(cls) for cls in self.operator.defined_resources])
        owners = await self._check_owners()
        permissions = await self._check_permissions()
        return UpgradeReport(self.operator.name, definitions, owners, permissions, tuple(self._not_checked))

    def _skip(self, what: str, error: Exception) -> None:
        """Record a part that cannot be checked; without a cluster, nothing can.

        Raises:
            Exception: The error, if the cluster cannot be reached or rejects the credentials.
        """
        if any(isinstance(cause, ConnectionFailedError | UnauthorizedError) for cause in iter_causes(error)):
            raise error
        self.failures.append(error)
        self._not_checked.append(f"{what}: {' '.join(format_error(error).split())}")

    async def _check_definition(self, cls: type[Any]) -> DefinitionReport:
        definition = find_definition(cls)
        name = definition.name
        self._kinds[definition.gvk] = _KindState(definition.gvk)
        try:
            live = await self.client.get(DEFINITION, ObjectKey("", name))
        except NotFoundError:
            self._kinds[definition.gvk].read_gvk = None
            return DefinitionReport(name, False, tuple(await self._find_rival_kinds(definition.gvk, name)))
        except KonvergeError as error:
            self._skip(f"CustomResourceDefinition {name}", error)
            return DefinitionReport(name, True)
        new = crd_manifest(cls)
        convert = self._find_conversion(definition.gvk)
        findings = list(diff_definitions(live, new, converts=convert is not None))
        if not any(finding.level == "refused" for finding in findings):
            try:
                await self.client.apply(new, field_manager=_FIELD_MANAGER, dry_run=True)
            except InvalidError as error:
                findings += _list_refusals(error)
            except KonvergeError as error:
                self._skip(f"CustomResourceDefinition {name}, the API server's own validation", error)
        read_gvk = _choose_read_version(live, definition.gvk)
        self._kinds[definition.gvk].read_gvk = read_gvk
        report = DefinitionReport(name, True, tuple(findings), list_stored_versions(live))
        if read_gvk is None:
            return report
        return await self._check_objects(report, live, new, definition.gvk, convert)

    def _find_conversion(self, gvk: GroupVersionKind) -> Any:
        hooks = self.operator.registered.webhooks.build_hooks()
        found = (hook for hook in hooks.conversion if hook.mapping.gvk.group_kind == gvk.group_kind)
        return next((hook.convert for hook in found), None)

    async def _find_rival_kinds(self, gvk: GroupVersionKind, name: str) -> list[Finding]:
        """Return what other definitions have the kind of a definition that the cluster does not have."""
        findings = []
        try:
            async for other in self.client.items(DEFINITION, limit=50):
                spec = other["spec"]
                if spec["names"]["kind"] != gvk.kind:
                    continue
                rival = other["metadata"]["name"]
                if spec["group"] == gvk.group:
                    change = f"the kind {gvk.kind} of the group {gvk.group} belongs to {rival}"
                    advice = f"the server accepts no second one; keep the plural {spec['names']['plural']}"
                    findings.append(Finding("refused", "names", change, advice))
                else:
                    change = f"{rival} has the kind {gvk.kind} too"
                    findings.append(Finding("note", "names", change, f"use kubectl get {name} to choose this one"))
        except KonvergeError as error:
            self._skip("other CustomResourceDefinitions of the same kind", error)
        return findings

    async def _check_objects(
        self, report: DefinitionReport, live: Object, new: Object, gvk: GroupVersionKind, convert: Any
    ) -> DefinitionReport:
        state = self._kinds[gvk]
        assert state.read_gvk is not None
        try:
            state.checker = ObjectChecker(
                build_validator(live),
                build_validator(new),
                target=gvk.api_version,
                convert=convert,
                secrets=self.client.secret_values,
            )
        except ConfigurationError as error:
            self._skip(f"objects of {report.name}", error)
            return report
        survey, is_cut = state.checker.survey, False
        try:
            async for obj in self.client.items(state.read_gvk, namespace=self.namespace, limit=_PAGE):
                if survey.checked >= self.limits.max_objects or self._is_over():
                    is_cut = True
                    break
                await state.checker.check(obj)
        except KonvergeError as error:
            self._skip(f"objects of {report.name}", error)
        self._not_checked += (f"{report.name}: {warning.removeprefix('konverge: ')}" for warning in survey.skipped)
        return DefinitionReport(
            report.name,
            True,
            report.findings,
            report.stored_versions,
            survey.checked,
            is_cut,
            tuple(survey.listed),
            dict(survey.outcomes),
        )

    def _is_over(self) -> bool:
        return self.clock.monotonic() >= self._ends

    async def _check_owners(self) -> OwnersReport:
        checked, is_cut, owners, writes = 0, False, [], Counter[str]()
        for registration in self.operator.registered.classes:
            definition = find_definition(registration.cls)
            try:
                async for obj in self._iter_owners(registration):
                    if checked >= self.limits.max_owners or self._is_over():
                        is_cut = True
                        break
                    checked += 1
                    changes, dry_run = await self._dry_run(registration, obj)
                    writes.update(change.action for change in (() if dry_run is None else dry_run.changes))
                    if changes is not None:
                        owners.append(changes)
            except KonvergeError as error:
                self._skip(f"owners of the kind {definition.gvk.kind}", error)
        return OwnersReport(checked, is_cut, dict(writes), tuple(owners))

    async def _iter_owners(self, registration: OwnerRegistration) -> AsyncIterator[Object]:
        """Yield the owners as the new version of the operator would read them."""
        definition = find_definition(registration.cls)
        state = self._kinds.get(definition.gvk, _KindState(definition.gvk))
        if state.read_gvk is None:
            return
        if state.checker is None and state.read_gvk != definition.gvk:
            raise KonvergeError(f"the cluster does not serve {definition.gvk.api_version}")
        options = self.operator.registered.cache_options.get(definition.gvk, CacheOptions())
        listed = self.client.items(
            state.read_gvk,
            namespace=self.namespace if definition.namespaced else "",
            label_selector=options.label_selector,
            field_selector=options.field_selector,
            limit=min(_PAGE, self.limits.max_owners + 1),
        )
        async for obj in listed:
            converted = obj if state.checker is None else await state.checker.read(obj)
            if converted is not None:
                yield converted

    async def _dry_run(
        self, registration: OwnerRegistration, obj: Object
    ) -> tuple[OwnerChanges | None, OwnerDryRun | None]:
        kind, name = obj["kind"], str(ObjectKey.of(obj))
        registered, failures = self.operator.registered, list[BaseException]()
        try:
            dry_run = await dry_run_owner(
                registration,
                obj,
                self._upgrade_client(),
                indexes=registered.indexes,
                adopt=registered.adopt,
                operator_name=registered.name,
                clock=self.clock,
                on_failure=failures.append,
            )
        except DecodeError as error:
            return OwnerChanges(kind, name, unreadable=" ".join(format_error(error).split())), None
        immutable: list[str] = []
        errors: list[str] = []
        for failure in (leaf for group in failures for leaf in _iter_leaves(group)):
            causes = list(iter_causes(failure))
            if any(isinstance(cause, ConnectionFailedError | UnauthorizedError) for cause in causes):
                raise failure
            is_immutable = any(isinstance(cause, InvalidError) and is_immutability_error(cause) for cause in causes)
            (immutable if is_immutable else errors).append(" ".join(format_error(failure).split()))
            if not is_immutable:
                self.failures.append(failure)
        writes = tuple(f"{change.action} {change.identity}" for change in dry_run.changes)
        halts = any(report.outcome == "not reached" for part in dry_run.components for report in part.resources)
        if not (writes or immutable or errors or dry_run.status):
            return None, dry_run
        if dry_run.status and not writes:
            writes = (f"update the status ({len(dry_run.status)} fields)",)
        return OwnerChanges(kind, name, writes, "", tuple(immutable), tuple(errors[:_MAX_ERRORS]), halts), dry_run

    def _upgrade_client(self) -> Client:
        served = {
            gvk: state.read_gvk
            for gvk, state in self._kinds.items()
            if state.read_gvk is not None and state.read_gvk != gvk
        }
        return cast("Client", UpgradedClient(self.client, served)) if served else self.client

    async def _check_permissions(self) -> PermissionsReport | None:
        try:
            granted = await read_granted_rules(self.client, self.account)
        except KonvergeError as error:
            self._skip(f"permissions of ServiceAccount {self.account}", error)
            return None
        if not granted.roles:
            self._not_checked.append(
                f"permissions: ServiceAccount {self.account} has no roles in this cluster; name the operator's account "
                "with --account NAMESPACE/NAME (konverge rbac prints its roles)"
            )
            return None
        return compare_permissions(
            granted,
            self._derive_permissions(RuntimeFeatures()),
            self._derive_permissions(_EVERY_FEATURE),
            self.account,
            (self.namespace,) if self.namespace else (),
        )

    def _derive_permissions(self, features: RuntimeFeatures) -> RequiredPermissions:
        declaration = self.operator.registered.declaration
        return derive_permissions(declaration, features, observation=self.observation, clock=self.clock)


def _choose_read_version(live: Object, wanted: GroupVersionKind) -> GroupVersionKind | None:
    """Return the version in which the cluster serves the objects: the wanted one, else the stored one, else any."""
    served = [str(version["name"]) for version in list_versions(live) if version.get("served")]
    kind = str(live["spec"]["names"]["kind"])
    for version in (wanted.version, storage_version(live), *served):
        if version in served:
            return GroupVersionKind(wanted.group, version, kind)
    return None


def _list_refusals(error: InvalidError) -> list[Finding]:
    causes = [(cause.field, cause.message) for cause in error.causes] or [("", str(error))]
    return [Finding("refused", field, " ".join(message.split())) for field, message in causes]


def _iter_leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _iter_leaves(inner)
    else:
        yield error
