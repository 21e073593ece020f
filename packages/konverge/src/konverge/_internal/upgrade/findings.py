"""The reports of a check and of a migration: values that convert to JSON (`msgspec.to_builtins`), in camel case."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "DefinitionReport",
    "Finding",
    "MigrationReport",
    "ObjectFindings",
    "OwnerChanges",
    "OwnersReport",
    "PermissionsReport",
    "UpgradeReport",
]


class _ReportPart(msgspec.Struct, frozen=True, rename="camel"):
    """Base class of the parts of the report."""


class Finding(_ReportPart, frozen=True, rename="camel"):
    """One change of a definition, with its consequence.

    Attributes:
        level: ``refused``: the server refuses the definition; ``breaking``: an object or a client that works today does
            not work afterwards; ``note``: nothing breaks.
        path: The version and the field, for example ``v1 .spec.replicas``; empty for the whole definition.
        change: The change.
        advice: What can be done, or what the change means for existing objects; empty for nothing.
    """

    level: Literal["refused", "breaking", "note"]
    path: str
    change: str
    advice: str = ""


class ObjectFindings(_ReportPart, frozen=True, rename="camel"):
    """An existing object that does not fit the new schema.

    Attributes:
        name: ``<namespace>/<name>``, or the name of a cluster-scoped object.
        outcome: ``survives``: each write that leaves the invalid fields as they are succeeds (ratcheting).
            ``refused``: the server refuses every write to it. ``loses fields``: it is valid, but fields are dropped.
            ``not converted``: no conversion to the new version succeeds. ``already invalid``: the present schema
            rejects it as well.
        errors: The fields with their errors, as the server words them.
        dropped: The paths of the fields that the next write drops.
    """

    name: str
    outcome: Literal["survives", "refused", "loses fields", "not converted", "already invalid"]
    errors: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class DefinitionReport(_ReportPart, frozen=True, rename="camel"):
    """The changes of one CustomResourceDefinition.

    Attributes:
        name: The name of the CustomResourceDefinition.
        is_installed: True if the cluster has it.
        findings: The changes.
        stored_versions: The versions in which the cluster may have stored objects.
        checked_objects: The number of objects that were validated.
        is_cut: True if there are more objects than the limit.
        objects: The objects that do not fit; at most `MAX_LISTED_OBJECTS` with each outcome.
        outcomes: The number of objects with each outcome.
    """

    name: str
    is_installed: bool
    findings: tuple[Finding, ...] = ()
    stored_versions: tuple[str, ...] = ()
    checked_objects: int = 0
    is_cut: bool = False
    objects: tuple[ObjectFindings, ...] = ()
    outcomes: dict[str, int] = {}


class OwnerChanges(_ReportPart, frozen=True, rename="camel"):
    """The writes of the next reconcile of one owner.

    Attributes:
        kind: The kind of the owner.
        name: ``<namespace>/<name>``, or the name of a cluster-scoped owner.
        writes: The writes in order, for example ``update apps/v1/Deployment/shop/web``.
        unreadable: The message if the class of the new version rejects the owner; such an owner is not reconciled.
        immutable: The messages about changes of immutable fields, which the server refuses.
        errors: The other errors of the reconcile.
        halts: True if a part of the owner was not reached, for example behind a guard.
    """

    kind: str
    name: str
    writes: tuple[str, ...] = ()
    unreadable: str = ""
    immutable: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    halts: bool = False


class OwnersReport(_ReportPart, frozen=True, rename="camel"):
    """The owners that would be reconciled.

    Attributes:
        checked: The number of owners with a dry run.
        is_cut: True if there are more owners than the limit, or the time was over.
        writes: The number of writes by action: ``create``, ``update``, ``delete``, ``release``.
        owners: The owners with writes or errors.
    """

    checked: int = 0
    is_cut: bool = False
    writes: dict[str, int] = {}
    owners: tuple[OwnerChanges, ...] = ()


class PermissionsReport(_ReportPart, frozen=True, rename="camel"):
    """The permissions of the operator's account in the cluster.

    Attributes:
        account: ``<namespace>/<name>`` of the ServiceAccount.
        roles: The roles that are bound to it, for example ``ClusterRole webapp``.
        missing: The rules that the account lacks.
        unneeded: The rules of the operator's own roles that nothing in this version uses.
        gaps: The permissions that cannot be derived.
    """

    account: str
    roles: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unneeded: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


class UpgradeReport(_ReportPart, frozen=True, rename="camel"):
    """The changes of an upgrade.

    Attributes:
        operator: The name of the operator.
        definitions: The CustomResourceDefinitions.
        owners: The owners.
        permissions: The permissions; None if they were not checked.
        not_checked: The parts that were not checked, each with the reason.
    """

    operator: str
    definitions: tuple[DefinitionReport, ...] = ()
    owners: OwnersReport = OwnersReport()
    permissions: PermissionsReport | None = None
    not_checked: tuple[str, ...] = ()

    @property
    def breaks(self) -> bool:
        """True if something that works today would not work afterwards."""
        return (
            any(finding.level != "note" for report in self.definitions for finding in report.findings)
            or any(set(report.outcomes) - {"already invalid"} for report in self.definitions)
            or any(owner.immutable or owner.unreadable for owner in self.owners.owners)
            or (self.permissions is not None and bool(self.permissions.missing))
        )


class MigrationReport(_ReportPart, frozen=True, rename="camel"):
    """The result of the migration of one custom resource.

    Attributes:
        name: The name of the CustomResourceDefinition.
        storage_version: The version in which the cluster stores objects.
        stored_versions_before: ``status.storedVersions`` at the start.
        stored_versions: ``status.storedVersions`` at the end.
        objects: The number of objects at the start.
        rewritten: The number of objects that were stored in another form, or that another client wrote meanwhile.
        current: The number of objects that were stored in this form already.
        deleted: The number of objects that were deleted meanwhile.
        failures: The objects that could not be rewritten, each with the reason; if there are any, the stored versions
            stay.
        is_dry_run: True if nothing was stored.
    """

    name: str
    storage_version: str
    stored_versions_before: tuple[str, ...]
    stored_versions: tuple[str, ...]
    objects: int = 0
    rewritten: int = 0
    current: int = 0
    deleted: int = 0
    failures: tuple[str, ...] = ()
    is_dry_run: bool = False
