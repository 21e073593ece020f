from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from tests.cluster.embedded.controllers.controller_harness import (
    APP,
    JOB,
    NEVER_READY,
    POD,
    ControllerHarness,
    read_condition,
    read_counts,
)

pytestmark = pytest.mark.anyio


def job(image: str = APP, **spec: Any) -> Object:
    labels = {"batch.kubernetes.io/job-name": "work"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "manualSelector": True,
            "template": {
                "metadata": {"labels": labels},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]},
            },
            **spec,
        },
    }


async def test_a_job_runs_to_completion(harness: ControllerHarness) -> None:
    harness.create(job())
    await harness.advance()

    found = harness.get(JOB, "work")
    (pod,) = harness.list_objects(POD)
    assert read_condition(found, "Complete") == ("True", "CompletionsReached")
    assert read_counts(found, "succeeded", "active", "failed") == (1, 0, 0)
    assert found["status"]["startTime"] == found["status"]["completionTime"]
    assert pod["status"]["phase"] == "Succeeded"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_parallelism_bounds_how_many_run_at_once(harness: ControllerHarness) -> None:
    harness.create(job(image="konverge.test/slow:1", completions=4, parallelism=2))
    await harness.advance(1)
    during = harness.get(JOB, "work")
    await harness.advance(10)

    assert read_counts(during, "active") == (2,)
    assert read_counts(harness.get(JOB, "work"), "succeeded") == (4,)


async def test_a_job_that_keeps_failing_gives_up(harness: ControllerHarness) -> None:
    harness.rules.failing(APP)
    harness.create(job(backoffLimit=2))
    await harness.advance(60)

    found = harness.get(JOB, "work")
    assert read_condition(found, "Failed") == ("True", "BackoffLimitExceeded")
    assert read_counts(found, "failed") == (3,)


async def test_a_job_waits_for_a_pod_that_does_not_start(harness: ControllerHarness) -> None:
    harness.create(job(NEVER_READY))
    await harness.advance(3600)

    assert read_counts(harness.get(JOB, "work"), "active", "ready") == (1, 0)


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(harness: ControllerHarness) -> None:
    harness.create(job(suspend=True))
    await harness.advance()
    suspended = harness.get(JOB, "work")
    pods = harness.list_names(POD)

    harness.change_spec(JOB, "work", suspend=False)
    await harness.advance()

    assert pods == []
    assert read_condition(suspended, "Suspended") == ("True", "JobSuspended")
    assert read_condition(harness.get(JOB, "work"), "Suspended") == ("False", "JobResumed")
    assert read_condition(harness.get(JOB, "work"), "Complete")[0] == "True"


async def test_a_finished_job_goes_when_its_time_is_over(harness: ControllerHarness) -> None:
    harness.create(job(ttlSecondsAfterFinished=100))
    await harness.advance(90)
    early = harness.find(JOB, "work")
    await harness.advance(15)

    assert early is not None
    assert harness.find(JOB, "work") is None
    assert harness.list_names(POD) == []
