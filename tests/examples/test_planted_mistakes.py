"""Mistakes in the operator for PostgreSQL that both type checkers report before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import REPOSITORY
from tests.docs.test_readme_types import list_reported, plant

# A mistake by the text that it replaces; the error is on a line of the replaced text.
MISTAKES = {
    "misspelled_field_of_a_container": ('"readinessProbe": {"exec"', '"readynessProbe": {"exec"'),
    "misspelled_field_of_a_claim": ('claim["storageClassName"] =', 'claim["storageClass"] ='),
    "misspelled_field_of_a_stateful_set": ('"serviceName": name', '"servicename": name'),
    "unknown_phase": ('"Suspended" if cluster.spec.suspended', '"Stopped" if cluster.spec.suspended'),
    "unknown_field_of_the_status": ("cluster.status.version = ", "cluster.status.versoin = "),
    "unknown_field_of_the_spec": ("cluster.spec.backup_every, ctx", "cluster.spec.backupEvery, ctx"),
    "number_for_a_duration": (".with_grace_period(timedelta(minutes=5))", ".with_grace_period(300)"),
    "forgotten_await": (
        "backups = await list_backups(cluster, ctx)\n        if",
        "backups = list_backups(cluster, ctx)\n        if",
    ),
    "function_of_another_kind": ("manages(PostgresUser, credentials,", "manages(PostgresUser, access,"),
    "wrong_status_of_a_condition": (
        'Condition("Granted", "True", "Granted", "")',
        'Condition("Granted", True, "Granted", "")',
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_every_planted_mistake_is_reported(checker: str, tmp_path: Path, type_checkers: dict[str, list[str]]) -> None:
    plant((REPOSITORY / "examples" / "postgres" / "operator.py").read_text(), MISTAKES, tmp_path)

    assert list_reported(type_checkers[checker], tmp_path) == set(MISTAKES)
