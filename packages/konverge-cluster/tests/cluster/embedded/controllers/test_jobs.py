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


async def test_a_job_runs_to_completion(stage: ControllerHarness) -> None:
    stage.create(job())
    await stage.advance()

    found = stage.get(JOB, "work")
    (pod,) = stage.list_objects(POD)
    assert read_condition(found, "Complete") == ("True", "CompletionsReached")
    assert read_counts(found, "succeeded", "active", "failed") == (1, 0, 0)
    assert found["status"]["startTime"] == found["status"]["completionTime"]
    assert pod["status"]["phase"] == "Succeeded"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_parallelism_bounds_how_many_run_at_once(stage: ControllerHarness) -> None:
    stage.create(job(image="konverge.test/slow:1", completions=4, parallelism=2))
    await stage.advance(1)
    during = stage.get(JOB, "work")
    await stage.advance(10)

    assert read_counts(during, "active") == (2,)
    assert read_counts(stage.get(JOB, "work"), "succeeded") == (4,)


async def test_a_job_that_keeps_failing_gives_up(stage: ControllerHarness) -> None:
    stage.rules.failing(APP)
    stage.create(job(backoffLimit=2))
    await stage.advance(60)

    found = stage.get(JOB, "work")
    assert read_condition(found, "Failed") == ("True", "BackoffLimitExceeded")
    assert read_counts(found, "failed") == (3,)


async def test_a_job_waits_for_a_pod_that_does_not_start(stage: ControllerHarness) -> None:
    stage.create(job(NEVER_READY))
    await stage.advance(3600)

    assert read_counts(stage.get(JOB, "work"), "active", "ready") == (1, 0)


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(stage: ControllerHarness) -> None:
    stage.create(job(suspend=True))
    await stage.advance()
    suspended = stage.get(JOB, "work")
    pods = stage.list_names(POD)

    stage.change_spec(JOB, "work", suspend=False)
    await stage.advance()

    assert pods == []
    assert read_condition(suspended, "Suspended") == ("True", "JobSuspended")
    assert read_condition(stage.get(JOB, "work"), "Suspended") == ("False", "JobResumed")
    assert read_condition(stage.get(JOB, "work"), "Complete")[0] == "True"


async def test_a_finished_job_goes_when_its_time_is_over(stage: ControllerHarness) -> None:
    stage.create(job(ttlSecondsAfterFinished=100))
    await stage.advance(90)
    early = stage.find(JOB, "work")
    await stage.advance(15)

    assert early is not None
    assert stage.find(JOB, "work") is None
    assert stage.list_names(POD) == []
