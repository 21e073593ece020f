"""The editing surface that kinds with a pod template share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from konverge._internal.mutation import (
    Mutation,
    PodSpecMutator,
    PodTemplateMutator,
    WorkloadMutator,
    all_containers,
    apply_mutations,
    container_named,
)
from konverge.kube import Object
from konverge.primitives import CronJob, DaemonSet, Deployment, Job, Pod, ReplicaSet, StatefulSet
from tests.primitives.objects import build_named


def pod_after(pod: Object, callback: Callable[[WorkloadMutator], None]) -> Object:
    obj: Object = {"spec": {"template": {"spec": pod}}}
    apply_mutations(obj, [Mutation("change", callback)], WorkloadMutator, identity="web")
    found: Object = obj["spec"]["template"]["spec"]
    return found


APP: Object = {"name": "app", "env": [{"name": "MODE", "value": "slow"}], "args": ["--debug"]}
PROXY: Object = {"name": "proxy"}


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        pytest.param(
            lambda m: m.ensure_container({"name": "app", "image": "app:2"}),
            [{"name": "app", "image": "app:2"}, PROXY],
            id="ensure_container replaces by name",
        ),
        pytest.param(
            lambda m: m.ensure_container({"name": "agent"}),
            [APP, PROXY, {"name": "agent"}],
            id="ensure_container appends",
        ),
        pytest.param(lambda m: m.remove_container("app"), [PROXY], id="remove_container"),
        pytest.param(lambda m: m.remove_container("absent"), [APP, PROXY], id="remove_container, absent"),
        pytest.param(lambda m: m.remove_containers(["proxy", "absent"]), [APP], id="remove_containers"),
        pytest.param(
            lambda m: m.ensure_container_env_var({"name": "MODE", "value": "fast"}),
            [
                {**APP, "env": [{"name": "MODE", "value": "fast"}]},
                {**PROXY, "env": [{"name": "MODE", "value": "fast"}]},
            ],
            id="ensure_container_env_var in all",
        ),
        pytest.param(
            lambda m: m.remove_container_env_var("MODE"),
            [{"name": "app", "args": ["--debug"]}, PROXY],
            id="remove_container_env_var",
        ),
        pytest.param(
            lambda m: m.remove_container_env_vars(["MODE", "OTHER"]),
            [{"name": "app", "args": ["--debug"]}, PROXY],
            id="remove_container_env_vars",
        ),
        pytest.param(
            lambda m: m.ensure_container_arg("--debug"),
            [APP, {**PROXY, "args": ["--debug"]}],
            id="ensure_container_arg without duplicates",
        ),
        pytest.param(
            lambda m: m.remove_container_arg("--debug"),
            [{"name": "app", "env": APP["env"]}, PROXY],
            id="remove_container_arg",
        ),
        pytest.param(
            lambda m: m.remove_container_args(["--debug", "--other"]),
            [{"name": "app", "env": APP["env"]}, PROXY],
            id="remove_container_args",
        ),
        pytest.param(
            lambda m: m.edit_containers(container_named("proxy"), lambda c: c.ensure_arg("--tls")),
            [APP, {**PROXY, "args": ["--tls"]}],
            id="edit_containers selects",
        ),
    ],
)
def test_containers(callback: Callable[[WorkloadMutator], None], expected: list[Object]) -> None:
    pod: Object = {"containers": [{**APP, "env": [dict(APP["env"][0])], "args": list(APP["args"])}, dict(PROXY)]}
    assert pod_after(pod, callback)["containers"] == expected


@pytest.mark.parametrize(
    ("callback", "expected"),
    [
        pytest.param(
            lambda m: m.ensure_init_container({"name": "setup", "image": "setup:2"}),
            {"initContainers": [{"name": "setup", "image": "setup:2"}]},
            id="ensure_init_container replaces",
        ),
        pytest.param(lambda m: m.remove_init_container("setup"), {}, id="remove_init_container drops an empty list"),
        pytest.param(lambda m: m.remove_init_containers(["setup", "absent"]), {}, id="remove_init_containers"),
        pytest.param(
            lambda m: m.edit_init_containers(all_containers(), lambda c: c.ensure_arg("--once")),
            {"initContainers": [{"name": "setup", "args": ["--once"]}]},
            id="edit_init_containers",
        ),
        pytest.param(
            lambda m: m.ensure_container_env_var({"name": "MODE", "value": "fast"}),
            {"initContainers": [{"name": "setup"}]},
            id="shortcuts for containers leave init containers alone",
        ),
    ],
)
def test_init_containers(callback: Callable[[WorkloadMutator], None], expected: Object) -> None:
    assert pod_after({"initContainers": [{"name": "setup"}]}, callback) == expected


def test_pod_template_metadata_is_not_the_object_s() -> None:
    obj: Object = {"metadata": {"name": "web"}}

    def label(m: WorkloadMutator) -> None:
        m.edit_object_metadata(lambda metadata: metadata.ensure_label("on", "object"))
        m.edit_pod_template_metadata(lambda metadata: metadata.ensure_label("on", "pods"))

    apply_mutations(obj, [Mutation("label", label)], WorkloadMutator, identity="web")

    assert obj["metadata"]["labels"] == {"on": "object"}
    assert obj["spec"]["template"]["metadata"]["labels"] == {"on": "pods"}


def trace(m: PodSpecMutator) -> None:
    m.ensure_container({"name": "tracer"})


TRACED: Object = {"containers": [{"name": "tracer"}]}


def test_a_mutation_of_workloads_serves_deployments_stateful_sets_and_daemon_sets() -> None:
    tracing = Mutation[WorkloadMutator]("tracing", trace)
    workloads = (
        Deployment(build_named(), mutations=tracing),
        StatefulSet(build_named(), mutations=tracing),
        DaemonSet(build_named(), mutations=tracing),
    )
    assert [workload.render()["spec"]["template"]["spec"] for workload in workloads] == [TRACED] * 3


def test_a_mutation_of_workloads_is_refused_elsewhere_by_the_type_checker() -> None:
    """A type checker that finds nothing here complains of the comment."""
    tracing = Mutation[WorkloadMutator]("tracing", trace)
    ReplicaSet(build_named(), mutations=tracing)  # type: ignore[arg-type]
    Pod(build_named(), mutations=tracing)  # type: ignore[arg-type]
    Job(build_named(), mutations=tracing)  # type: ignore[arg-type]
    CronJob(build_named(), mutations=tracing)  # type: ignore[arg-type]


def test_a_mutation_of_pod_templates_serves_all_kinds_that_make_pods() -> None:
    tracing = Mutation[PodTemplateMutator]("tracing", trace)
    makers = (
        Deployment(build_named(), mutations=tracing),
        StatefulSet(build_named(), mutations=tracing),
        DaemonSet(build_named(), mutations=tracing),
        ReplicaSet(build_named(), mutations=tracing),
        Job(build_named(), mutations=tracing),
    )
    assert [maker.render()["spec"]["template"]["spec"] for maker in makers] == [TRACED] * 5
    of_jobs = CronJob(build_named(), mutations=tracing).render()["spec"]["jobTemplate"]["spec"]
    assert of_jobs["template"]["spec"] == TRACED


def test_a_mutation_of_pod_specs_serves_pods_too() -> None:
    tracing = Mutation("tracing", trace)
    assert Pod(build_named(), mutations=tracing).render()["spec"] == TRACED
    assert Job(build_named(), mutations=tracing).render()["spec"]["template"]["spec"] == TRACED
