from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from tests.localcluster.players.stage import APP, JOB, NEVER_READY, POD, Stage, condition, counts

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


async def test_a_job_runs_to_completion(stage: Stage) -> None:
    stage.create(job())
    await stage.settle()

    found = stage.get(JOB, "work")
    (pod,) = stage.all(POD)
    assert condition(found, "Complete") == ("True", "CompletionsReached")
    assert counts(found, "succeeded", "active", "failed") == (1, 0, 0)
    assert found["status"]["startTime"] == found["status"]["completionTime"]
    assert pod["status"]["phase"] == "Succeeded"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_parallelism_bounds_how_many_run_at_once(stage: Stage) -> None:
    stage.create(job(image="konverge.test/slow:1", completions=4, parallelism=2))
    await stage.settle(1)
    during = stage.get(JOB, "work")
    await stage.settle(10)

    assert counts(during, "active") == (2,)
    assert counts(stage.get(JOB, "work"), "succeeded") == (4,)


async def test_a_job_that_keeps_failing_gives_up(stage: Stage) -> None:
    stage.rules.failing(APP)
    stage.create(job(backoffLimit=2))
    await stage.settle(60)

    found = stage.get(JOB, "work")
    assert condition(found, "Failed") == ("True", "BackoffLimitExceeded")
    assert counts(found, "failed") == (3,)


async def test_a_job_waits_for_a_pod_that_does_not_start(stage: Stage) -> None:
    stage.create(job(NEVER_READY))
    await stage.settle(3600)

    assert counts(stage.get(JOB, "work"), "active", "ready") == (1, 0)


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(stage: Stage) -> None:
    stage.create(job(suspend=True))
    await stage.settle()
    suspended = stage.get(JOB, "work")
    pods = stage.names(POD)

    stage.change_spec(JOB, "work", suspend=False)
    await stage.settle()

    assert pods == []
    assert condition(suspended, "Suspended") == ("True", "JobSuspended")
    assert condition(stage.get(JOB, "work"), "Suspended") == ("False", "JobResumed")
    assert condition(stage.get(JOB, "work"), "Complete")[0] == "True"


async def test_a_finished_job_goes_when_its_time_is_over(stage: Stage) -> None:
    stage.create(job(ttlSecondsAfterFinished=100))
    await stage.settle(90)
    early = stage.find(JOB, "work")
    await stage.settle(15)

    assert early is not None
    assert stage.find(JOB, "work") is None
    assert stage.names(POD) == []
