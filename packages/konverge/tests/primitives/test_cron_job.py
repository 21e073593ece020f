"""A CronJob's health, grace and suspension, and the parts that its mutations reach."""

from __future__ import annotations

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    CronJob,
    CronJobMutator,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

ACTIVE: Object = {"apiVersion": "batch/v1", "kind": "Job", "name": "backup-1"}
RUNNING: Object = {"spec": {"suspend": False}, "status": {"active": [ACTIVE]}}
RUNNING_SUSPENDED: Object = {"spec": {"suspend": True}, "status": {"active": [ACTIVE]}}
NEVER_DUE: Object = {"spec": {"suspend": False}, "status": {}}
SUSPENDED: Object = {"spec": {"suspend": True}, "status": {}}


@pytest.mark.parametrize("found", [RUNNING, RUNNING_SUSPENDED, NEVER_DUE, SUSPENDED, {}])
@pytest.mark.parametrize("operation", Operation)
def test_it_is_operational_by_existing(found: Object, operation: Operation) -> None:
    backup = CronJob(build_named())
    expected = Convergence(ConvergingStatus.OPERATIONAL, "CronJob is scheduled")
    assert backup.converging_status(found, operation) == expected
    assert backup.grace_status(found) == Grace(GraceStatus.HEALTHY, "CronJob is scheduled")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            NEVER_DUE,
            Suspension(SuspensionStatus.SUSPENDING, "Waiting for CronJob to be suspended"),
            id="not told yet",
        ),
        pytest.param(
            RUNNING_SUSPENDED,
            Suspension(SuspensionStatus.SUSPENDING, "Waiting for 1 active Job(s) to finish"),
            id="a Job still runs",
        ),
        pytest.param(SUSPENDED, Suspension(SuspensionStatus.SUSPENDED, "CronJob suspended"), id="suspended"),
    ],
)
def test_suspension(found: Object, expected: Suspension) -> None:
    assert CronJob(build_named()).suspension_status(found) == expected


def test_suspension_keeps_it() -> None:
    backup = CronJob(build_named(spec={"schedule": "0 3 * * *"}))
    assert backup.render(suspended=True)["spec"] == {"schedule": "0 3 * * *", "suspend": True}
    assert not backup.deletes_on_suspend


def test_each_part_is_edited_where_it_is() -> None:
    def shape(m: CronJobMutator) -> None:
        m.edit_object_metadata(lambda metadata: metadata.ensure_label("on", "object"))
        m.edit_cron_job_spec(lambda spec: spec.set(schedule="0 3 * * *"))
        m.edit_job_spec(lambda spec: spec.set(backoffLimit=2))
        m.edit_pod_template_metadata(lambda metadata: metadata.ensure_label("on", "pods"))
        m.edit_pod_spec(lambda spec: spec.set(serviceAccountName="backup"))
        m.ensure_container({"name": "backup"})

    desired = CronJob(build_named(), mutations=Mutation("shape", shape)).render()
    template = {
        "metadata": {"labels": {"on": "pods"}},
        "spec": {"serviceAccountName": "backup", "containers": [{"name": "backup"}]},
    }
    assert desired["metadata"]["labels"] == {"on": "object"}
    assert desired["spec"] == {
        "schedule": "0 3 * * *",
        "jobTemplate": {"spec": {"backoffLimit": 2, "template": template}},
    }


def test_edits_are_made_from_the_outside_to_the_inside() -> None:
    order: list[str] = []

    def shape(m: CronJobMutator) -> None:
        m.edit_init_containers(lambda _index, _container: True, lambda _: order.append("init container"))
        m.edit_containers(lambda _index, _container: True, lambda _: order.append("container"))
        m.edit_pod_spec(lambda _: order.append("pod spec"))
        m.edit_pod_template_metadata(lambda _: order.append("pod template metadata"))
        m.edit_job_spec(lambda _: order.append("job spec"))
        m.edit_cron_job_spec(lambda _: order.append("cron job spec"))
        m.edit_object_metadata(lambda _: order.append("object metadata"))
        m.ensure_container({"name": "backup"})
        m.ensure_init_container({"name": "setup"})

    CronJob(build_named(), mutations=Mutation("shape", shape)).render()

    assert order == [
        "object metadata",
        "cron job spec",
        "job spec",
        "pod template metadata",
        "pod spec",
        "container",
        "init container",
    ]
