"""Upgrades of an operator: the check before it, and the migration of stored objects after it.

`UpgradeCheck` compares a new version of an operator with a cluster: the CustomResourceDefinitions and the existing
objects under them, the writes of the next reconciles, the permissions. It gets an operator and a client, sends reads
and dry runs, and returns an `UpgradeReport`. `StorageMigration` rewrites the objects of a custom resource in its
storage version. Comparisons are pure; the rules for existing objects are those of the embedded cluster.
"""

from konverge._internal.upgrade.findings import MigrationReport, UpgradeReport
from konverge._internal.upgrade.storage_migration import StorageMigration
from konverge._internal.upgrade.upgrade_check import CheckLimits, UpgradeCheck

__all__ = ["CheckLimits", "MigrationReport", "StorageMigration", "UpgradeCheck", "UpgradeReport"]
