"""`konverge explain`: a component that is blocked, one in grace, one fought over, on both clusters."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from konverge.kube import Object, ObjectKey
from tests.cli.stuck_owner import DEPLOYMENT, SECRET, WARD, StuckOwner

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


async def read_explanation(stuck: StuckOwner, component: str = "") -> Any:
    """The story as a program reads it; of one component only that."""
    done = await stuck.run("explain", "ward/east", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    story = json.loads(done.stdout)
    return next((each for each in story["components"] if each["component"] == component), story)


def section(text: str, component: str) -> str:
    """What is said of one component, on one line."""
    _, _, rest = text.partition(f"component {component}")
    return " ".join(rest.partition("\ncomponent ")[0].split())


@pytest.mark.slow
async def test_a_person_reads_what_is_blocked_what_has_grace_and_what_is_fought_over(stuck: StuckOwner) -> None:
    await stuck.run_operator()
    await stuck.force_settings()

    done = await stuck.run("explain", is_started=True)

    assert (done.returncode, done.stderr) == (0, "")
    name = f"v1/ConfigMap/{stuck.cluster.namespace}/east"
    settings, pages = section(done.stdout, "settings"), section(done.stdout, "pages")
    mail, search = section(done.stdout, "mail"), section(done.stdout, "search")
    assert f"{name}-settings [managed] would be updated (1 field) fought over by painter (Apply, since" in settings
    assert '.data.colour is "red", desired "blue"' in settings
    assert "Scaling: Waiting for replicas: 0/2 ready read spec.replicas=2" in pages
    assert "status.readyReplicas=absent" in pages
    assert "Creating is kept" in pages
    assert "grace: Down: No replicas are ready" in pages
    assert "Its grace period of 3600 s ends at" in pages
    assert f"{name}-account [read-only] halts the component: waiting for {name}-account" in mail
    assert f"{name}-outbox [managed] not reached" in mail
    assert f"The component continues as soon as {name}-account exists." in mail
    assert 'NotMet (Prerequisite not met: waiting for condition "PagesReady" to become True' in search
    assert "\x1b" not in done.stdout


async def test_the_cause_of_a_late_workload_is_shown(stuck: StuckOwner) -> None:
    await stuck.run_operator()

    async def explain() -> str | None:
        pages = section((await stuck.run("explain")).stdout, "pages")
        return pages if "cause: " in pages else None

    pages = await stuck.cluster.eventually(explain, describe="the pods have a status")

    assert "cause: Pod east-pages-" in pages
    assert 'container main: ImagePullBackOff, image "konverge.test/never-ready:1"' in pages


async def test_a_rival_is_named_between_its_writes(stuck: StuckOwner) -> None:
    await stuck.run_operator()
    await stuck.force_settings()
    await stuck.heal_settings()

    settings = section((await stuck.run("explain")).stdout, "settings")

    assert "[managed] as desired" in settings
    assert "taken over from painter (.data.colour), once, last at" in settings


async def test_the_deciding_fields_are_told_with_their_values(stuck: StuckOwner) -> None:
    await stuck.run_operator()

    pages = await read_explanation(stuck, "pages")

    [deployment, _] = pages["resources"]
    read = {each["path"]: each["value"] for each in deployment["convergence"]["decidedBy"] if each["isPresent"]}
    assert (pages["before"]["reason"], pages["after"]["reason"]) == ("Creating", "Creating")
    assert pages["before"]["since"] == pages["after"]["since"]
    assert (read["metadata.generation"], read["status.observedGeneration"], read["spec.replicas"]) == (1, 1, 2)
    assert pages["graceEnds"] > pages["wakesAt"]  # its pods are examined before


async def test_data_that_is_missing_is_told_with_who_fills_it(stuck: StuckOwner) -> None:
    metadata = {"name": "east-account", "namespace": stuck.cluster.namespace}
    await stuck.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

    mail = await read_explanation(stuck, "mail")

    [account, outbox, service] = mail["resources"]
    assert (account["outcome"], outbox["outcome"], service["outcome"]) == ("read", "halts", "not reached")
    assert outbox["missingData"] == ["relay"]
    assert any(f'Data "relay" comes from {account["identity"]}' in sentence for sentence in mail["next"])


async def test_what_a_pass_would_do_before_the_first_one(stuck: StuckOwner) -> None:
    story = await read_explanation(stuck)

    settings = story["components"][0]
    assert (story["before"], settings["before"]) == (None, None)
    assert settings["after"]["reason"] == "Healthy"
    assert [change["action"] for change in settings["changes"]] == ["create", "create"]


async def test_a_failing_component_is_explained_and_stops_no_other(stuck: StuckOwner) -> None:
    await stuck.change(broken=True)

    done = await stuck.run("explain")

    settings = section(done.stdout, "settings")
    assert (done.returncode, done.stderr) == (0, "")
    assert "now False Error" in settings
    assert ": failed to mutate resource v1/ConfigMap/" in settings
    assert "east-settings [managed] fails with the error above" in settings
    assert "the author's own mistake" in settings
    assert "retried after a growing backoff" in settings
    assert "would be created" in section(done.stdout, "pages")


@pytest.mark.slow
async def test_no_value_of_a_secret_is_told(stuck: StuckOwner) -> None:
    await stuck.run_operator()
    key = ObjectKey(stuck.cluster.namespace, "east-access")
    secret: Object = await stuck.cluster.client.get(SECRET, key)
    secret["data"]["password"] = "bGV0bWVpbg=="
    await stuck.cluster.client.update(secret)

    texts = [(await stuck.run(*command)).stdout for command in (("explain",), ("explain", "ward/east", "-o", "json"))]

    assert all("fought over" in text or "isFoughtOver" in text for text in texts)
    for value in ("hunter2", "aHVudGVyMg==", "bGV0bWVpbg==", "letmein"):
        assert all(value not in text for text in texts)


async def test_explaining_writes_nothing(stuck: StuckOwner) -> None:
    await stuck.run_operator()
    await stuck.force_settings()
    await stuck.change(colour="green", image="konverge.test/never-ready:2")
    before = await stuck.list_versions()
    key = ObjectKey(stuck.cluster.namespace, "east-pages")
    deployment = await stuck.cluster.client.get(DEPLOYMENT, key)

    await stuck.run("explain")

    assert await stuck.list_versions() == before
    assert (await stuck.cluster.client.get(DEPLOYMENT, key))["metadata"] == deployment["metadata"]
    assert stuck.list_verbs("explain") <= {"get", "list", "patch"}
    assert "patch" in stuck.list_verbs("explain")


async def test_one_component_can_be_chosen(stuck: StuckOwner) -> None:
    done = await stuck.run("explain", "wd/east", "--component", "mail")

    assert "component mail" in done.stdout
    assert "component pages" not in done.stdout


async def test_a_component_that_there_is_not(stuck: StuckOwner) -> None:
    done = await stuck.run("explain", "wd/east", "--component", "male")

    assert (done.returncode, done.stdout) == (3, "")
    assert "Ward east: expected one of its components (settings, pages, mail, search), found 'male'" in done.stderr


async def test_an_owner_that_is_being_deleted(stuck: StuckOwner) -> None:
    owner = await stuck.cluster.client.get(WARD, ObjectKey(stuck.cluster.namespace, "east"))
    owner["metadata"]["finalizers"] = ["test.konverge.test/hold"]
    await stuck.cluster.client.update(owner)
    await stuck.cluster.client.delete(WARD, ObjectKey(stuck.cluster.namespace, "east"))

    done = await stuck.run("explain")

    assert re.search(r"  is being deleted since \S+Z: its components are not reconciled", done.stdout)
    assert "held by   finalizer test.konverge.test/hold\n" in done.stdout
    owner = await stuck.cluster.client.get(WARD, ObjectKey(stuck.cluster.namespace, "east"))
    owner["metadata"]["finalizers"] = []
    await stuck.cluster.client.update(owner)


@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])
@pytest.mark.parametrize("command", ["diff", "explain"])
async def test_what_the_user_may_not_read_is_told_as_that(stuck: StuckOwner, command: str) -> None:
    reader = await stuck.write_restricted_kubeconfig()

    async def attempt() -> subprocess.CompletedProcess[str] | None:
        done = await stuck.run(command, kubeconfig=reader)
        return done if "wards" not in done.stderr else None  # until the role has come into effect

    done = await stuck.cluster.eventually(attempt)

    assert done.returncode == 4
    assert 'cannot get resource "configmaps"' in done.stderr
    assert all(line.startswith("konverge: ") for line in done.stderr.splitlines())
