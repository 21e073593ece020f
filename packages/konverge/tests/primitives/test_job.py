"""A Job's progress and suspension, by the situations that a cluster shows."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    Job,
    JobMutator,
    Operation,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named


def live(*conditions: Object, suspend: bool = False, **status: Any) -> Object:
    """A Job as the server has it."""
    return {"spec": {"suspend": suspend}, "status": {"conditions": list(conditions), **status}}


def condition(condition_type: str, status: str = "True", **fields: str) -> Object:
    return {"type": condition_type, "status": status, **fields}


COMPLETE = live(condition("SuccessCriteriaMet"), condition("Complete"), succeeded=1)
RUNNING_AGAIN = live(condition("Complete", "False"), condition("Failed", "False"), active=1)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        pytest.param({}, ConvergingStatus.TASK_PENDING, "Job has no active pods", id="created"),
        pytest.param(live(active=2), ConvergingStatus.TASK_RUNNING, "Job has 2 active pod(s)", id="running"),
        pytest.param(RUNNING_AGAIN, ConvergingStatus.TASK_RUNNING, "Job has 1 active pod(s)", id="no verdict"),
        pytest.param(
            live(condition("FailureTarget"), active=1),
            ConvergingStatus.TASK_RUNNING,
            "Job has 1 active pod(s)",
            id="failing, pods not ended yet",
        ),
        pytest.param(
            live(condition("Failed", reason="BackoffLimitExceeded", message="Job has reached the limit"), failed=7),
            ConvergingStatus.TASK_FAILING,
            "Job failed: Job has reached the limit",
            id="failed",
        ),
        pytest.param(
            live(condition("Failed", reason="DeadlineExceeded")),
            ConvergingStatus.TASK_FAILING,
            "Job failed: DeadlineExceeded",
            id="failed without a message",
        ),
        pytest.param(COMPLETE, ConvergingStatus.COMPLETED, "Job completed", id="complete"),
    ],
)
@pytest.mark.parametrize("operation", Operation)
def test_progress(found: Object, operation: Operation, status: ConvergingStatus, reason: str) -> None:
    assert Job(build_named()).converging_status(found, operation) == Convergence(status, reason)


def test_it_is_not_graded() -> None:
    assert Job(build_named()).grace_status(live()) is None


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            live(active=1),
            Suspension(SuspensionStatus.SUSPENDING, "Waiting for Job to be suspended"),
            id="not told yet",
        ),
        pytest.param(
            live(suspend=True, active=2),
            Suspension(SuspensionStatus.SUSPENDING, "Waiting for 2 active pod(s) to stop"),
            id="stopping",
        ),
        pytest.param(live(suspend=True), Suspension(SuspensionStatus.SUSPENDED, "Job suspended"), id="stopped"),
    ],
)
def test_suspension(found: Object, expected: Suspension) -> None:
    assert Job(build_named()).suspension_status(found) == expected


def test_suspension_stops_and_deletes_it() -> None:
    job = Job(build_named(spec={"parallelism": 2}))
    assert job.render(suspended=True)["spec"] == {"parallelism": 2, "suspend": True}
    assert job.deletes_on_suspend


def test_the_spec_has_its_own_edits() -> None:
    def shape(m: JobMutator) -> None:
        m.edit_job_spec(lambda spec: spec.set(backoffLimit=2))
        m.edit_pod_spec(lambda spec: spec.raw().update(restartPolicy="Never"))
        m.ensure_container({"name": "import"})

    assert Job(build_named(), mutations=Mutation("shape", shape)).render()["spec"] == {
        "backoffLimit": 2,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "import"}]}},
    }
