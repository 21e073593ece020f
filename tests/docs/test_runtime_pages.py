"""The examples on the pages about the runtime work, and their lists are complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from konverge._internal.cli.main import konverge as program
from konverge._internal.cli.migrate_storage import migrate_storage
from konverge._internal.cli.rbac import rbac
from konverge._internal.cli.run import run
from konverge._internal.cli.run_options import RunFlags
from konverge._internal.cli.upgrade_check import upgrade_check
from konverge._internal.cli.webhooks import webhooks
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge._internal.runtime.observability import metric_families
from konverge.client import Client
from konverge.crd import find_definition
from konverge.errors import ForbiddenError, InvalidError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import RunOptions
from konverge.runtime import LeaderElection
from konverge.webhooks import ServiceReference, WebhookOptions
from konverge_cluster.testing import Cluster
from tests.docs.pages import REPOSITORY, find_code_blocks, find_commands, load_page_operator, read_page, save_page_code

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
KONVERGE = str(Path(sys.executable).with_name("konverge"))
PAGES = [
    "docs/reconciling.md",
    "docs/own-status.md",
    "docs/other-kinds.md",
    "docs/custom-resources.md",
    "docs/webhooks.md",
    "docs/permissions.md",
    "docs/observability.md",
]
FAMILIES = [found for found in vars(metric_families).values() if isinstance(found, metric_families.MetricFamily)]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_is_a_file_that_runs(page: str, tmp_path: Path) -> None:
    file = save_page_code(page, tmp_path)

    assert run_command([sys.executable, "-W", "error", str(file)], tmp_path) == ""


def run_command(command: list[str], folder: Path) -> str:
    """Return the output of a command that succeeds without error output."""
    ended = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


async def text_of_config_map(client: Client, key: ObjectKey) -> Object | None:
    try:
        found: Object = (await client.get(CONFIG_MAP, key))["data"]
    except NotFoundError:
        return None
    return found


@pytest.mark.anyio
async def test_the_function_of_the_reconciling_page_copies_repairs_and_cleans_up(
    cluster: Cluster, tmp_path: Path
) -> None:
    operator = load_page_operator("docs/reconciling.md", tmp_path)
    mirror = find_definition(operator.custom_resources[0]).gvk
    client, copy = cluster.client, ObjectKey(cluster.namespace, "home")
    source = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "origin", "namespace": cluster.namespace}}
    labels = {"example.com/subscription": "yes"}

    async def holds(text: str) -> bool:
        return await text_of_config_map(client, copy) == {"a.text": text}

    def applies() -> list[str]:
        return [
            request.path
            for request in cluster.list_requests(operator.name)
            if request.path.partition("?")[0].endswith("/configmaps/home")
        ]

    async with cluster.run_operator(operator):
        metadata = {"name": "home", "namespace": cluster.namespace}
        spec = {"source": "origin", "prefix": "a.", "subscription": "ours"}
        await client.create({"apiVersion": mirror.api_version, "kind": mirror.kind, "metadata": metadata, "spec": spec})
        await cluster.wait_for_condition(mirror, "home", status="False", reason="NoSource")
        await client.create({**source, "data": {"text": "one"}})
        await cluster.wait_for_condition(mirror, "home")
        await cluster.eventually(lambda: holds("one"), describe="the copy is there")
        await client.apply({**source, "data": {"text": "two"}}, field_manager="docs")
        await cluster.eventually(lambda: holds("two"), describe="the copy follows")
        await client.patch(CONFIG_MAP, copy, {"data": {"a.text": "by hand"}}, patch_type="merge")
        await cluster.eventually(lambda: holds("two"), describe="the copy is repaired")
        await cluster.clock.sleep(2.0)  # its own writes have caused its last reconcile

        applied = len(applies())
        subscription = {"name": "ours", "namespace": cluster.namespace, "labels": labels}
        await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": subscription})
        await cluster.eventually(lambda: len(applies()) > applied, describe="a pass after the subscription came")
        owner = await client.get(mirror, copy)
        await client.delete(mirror, copy)

        async def is_gone() -> bool:
            try:
                await client.get(mirror, copy)
            except NotFoundError:
                return True
            return False

        await cluster.eventually(is_gone, describe="the mirror has been withdrawn and is gone")

    assert owner["metadata"]["finalizers"] == ["example.com/mirrors"]


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_operator_of_the_status_page_reports_its_phase_after_the_migration(
    cluster: Cluster, tmp_path: Path
) -> None:
    operator = load_page_operator("docs/own-status.md", tmp_path)
    database = find_definition(operator.custom_resources[0]).gvk
    key = ObjectKey(cluster.namespace, "main")

    async def find_status(phase: str) -> Object | None:
        status: Object = (await cluster.client.get(database, key)).get("status") or {}
        return status if status.get("phase") == phase else None

    async with cluster.run_operator(operator):
        metadata = {"name": "main", "namespace": cluster.namespace}
        await cluster.client.create(
            {"apiVersion": database.api_version, "kind": database.kind, "metadata": metadata, "spec": {"replicas": 2}}
        )
        status = await cluster.eventually(lambda: find_status("Running"), describe="the database runs")

    fields = {name: value for name, value in status.items() if name != "conditions"}
    endpoint = f"main.{cluster.namespace}.svc:5432"
    expected = {"phase": "Running", "endpoint": endpoint, "version": "17", "readyReplicas": 2, "observedGeneration": 1}
    assert fields == expected
    assert {entry["type"] for entry in status["conditions"]} == {"Ready", "ServerReady", "AccessReady", "Migrated"}


@pytest.mark.slow
def test_a_preview_of_the_status_page_lists_the_functions_that_it_does_not_call(tmp_path: Path) -> None:
    file, owner = save_page_code("docs/own-status.md", tmp_path), tmp_path / "main.yaml"
    owner.write_text("{apiVersion: example.com/v1alpha1, kind: Database, metadata: {name: main}, spec: {}}")
    command = [KONVERGE, "preview", str(file), str(owner)]

    done = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert [obj["kind"] for obj in yaml.safe_load_all(done.stdout)] == ["Deployment", "Service"]
    reason = "not called, because it gets live objects; konverge diff calls it and writes nothing"
    assert done.stderr == f"konverge: migrate: {reason}\nkonverge: report: {reason}\n"


@pytest.mark.anyio
async def test_the_custom_resource_of_its_page_is_served_with_its_rules(cluster: Cluster, tmp_path: Path) -> None:
    operator = load_page_operator("docs/custom-resources.md", tmp_path)
    fleet = find_definition(operator.custom_resources[0]).gvk
    example: Object = {"apiVersion": fleet.api_version, "kind": fleet.kind, "spec": {"region": "north"}}

    def build_object(name: str, **spec: object) -> Object:
        metadata = {"name": name, "namespace": cluster.namespace}
        return {**example, "metadata": metadata, "spec": {**example["spec"], **spec}}

    async with cluster.run_operator(operator):
        await cluster.client.create(build_object("home"))
        await cluster.wait_for_condition(fleet, "home")
        with pytest.raises(InvalidError, match="a fleet does not move"):
            await cluster.client.apply(build_object("home", region="south"), field_manager="docs")
        with pytest.raises(InvalidError, match="the minimum is above the maximum"):
            await cluster.client.create(build_object("other", bounds={"minReplicas": 9, "maxReplicas": 3}))
        with pytest.raises(InvalidError, match="no fleet is called so"):
            await cluster.client.create(build_object("armada"))
        with pytest.raises(InvalidError, match="has a TODO in it"):
            await cluster.client.create(build_object("other", note="TODO: paint"))
        selected = await cluster.client.list(fleet, namespace=cluster.namespace, field_selector="spec.tier=free")

    assert [obj["metadata"]["name"] for obj in selected.items] == ["home"]


@pytest.mark.anyio
@pytest.mark.real_time
async def test_the_webhooks_of_their_page_refuse_complete_and_convert(cluster: Cluster, tmp_path: Path) -> None:
    operator = load_page_operator("docs/webhooks.md", tmp_path)
    definition = find_definition(operator.custom_resources[0])
    old = GroupVersionKind("example.com", "v1beta1", "Gallery")
    client = cluster.client

    def gallery(name: str, api_version: str, **spec: object) -> Object:
        metadata = {"name": name, "namespace": cluster.namespace}
        return {"apiVersion": api_version, "kind": "Gallery", "metadata": metadata, "spec": spec}

    async def is_asked() -> bool:
        try:
            await client.apply(gallery("probe", "example.com/v1", replicas=9), field_manager="docs", dry_run=True)
        except InvalidError as refusal:
            return "more than 5 are for the group ops, found 9" in refusal.message
        return False

    in_namespace = RunOptions(namespaces=(cluster.namespace,), webhooks=WebhookOptions(port=0), registers_webhooks=True)
    try:
        async with cluster.run_operator(operator, in_namespace):
            await cluster.eventually(is_asked, describe="the webhook is asked")
            made = await client.create(gallery("home", "example.com/v1", locked=True))
            await client.create(gallery("old", old.api_version, deployment="3 x nginx"))
            read = await client.get(definition.gvk, ObjectKey(cluster.namespace, "old"))
            back = await client.get(old, ObjectKey(cluster.namespace, "old"))
            with pytest.raises(ForbiddenError, match="the gallery is locked"):
                await client.delete(definition.gvk, ObjectKey(cluster.namespace, "home"))
    finally:
        await client.delete(DEFINITION, ObjectKey("", definition.name))  # no webhook converts objects any more

    assert made["spec"] == {"image": "nginx:1.29", "locked": True, "replicas": 1}
    assert read["spec"] == {"image": "nginx", "locked": False, "replicas": 3}
    assert back["spec"] == {"deployment": "3 x nginx"}


def test_the_manifests_of_the_webhooks_page_fit_its_command() -> None:
    service, _, certificate = yaml.safe_load_all(find_code_blocks("docs/webhooks.md", "yaml")[0])
    (command,) = [found for found in find_commands("docs/webhooks.md") if "--webhook-service" in found]

    with run.make_context("run", command[2:]) as context:
        flags = {name: value for name, value in context.params.items() if name not in _OWN}
    options = RunFlags(**flags).build_options("galleries")

    assert options.webhooks is not None
    reference = ServiceReference(service["metadata"]["namespace"], service["metadata"]["name"])
    assert options.webhooks.service == reference
    assert options.webhooks.port == service["spec"]["ports"][0]["targetPort"]
    assert certificate["spec"]["dnsNames"] == [reference.host]


# The options of `konverge run` itself; the others are for `RunFlags`.
_OWN = {"file", "kubeconfig_file", "context", "local", "install_crds", "log_format"}


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/permissions.md", "docs/custom-resources.md"])
def test_the_commands_of_a_page_do_what_they_should(page: str, tmp_path: Path) -> None:
    (tmp_path / "operator.py").write_text(read_page("examples/webapp/operator.py"))
    save_page_code("docs/custom-resources.md", tmp_path, "fleets.py")

    for _, *arguments in find_commands(page):
        assert list(yaml.safe_load_all(run_command([KONVERGE, *arguments], tmp_path)))


def test_what_the_permissions_page_declares_is_granted(tmp_path: Path) -> None:
    operator = load_page_operator("docs/permissions.md", tmp_path)

    found = derive_permissions(operator.registered.declaration)

    granted = {resource: set(rule.verbs) for rule in found.rules for resource in rule.resources}
    assert granted["configmaps"] == {"get", "list", "watch", "create", "patch"}
    assert granted["pods/log"] == {"get"}
    assert found.gaps == ()


@pytest.mark.anyio
async def test_the_deployment_of_the_page_on_replicas_is_accepted(cluster: Cluster) -> None:
    (example,) = find_code_blocks("docs/high-availability.md", "yaml")
    deployment: Object = yaml.safe_load(example)
    deployment["metadata"]["namespace"] = cluster.namespace

    await cluster.client.apply(deployment, field_manager="docs", dry_run=True, field_validation="Strict")


def test_the_arguments_of_that_deployment_are_options_that_leave_time_to_stop() -> None:
    pod = yaml.safe_load(find_code_blocks("docs/high-availability.md", "yaml")[0])["spec"]["template"]["spec"]
    with run.make_context("run", ["operator.py", *pod["containers"][0]["args"]]) as context:
        flags = {name: value for name, value in context.params.items() if name not in _OWN}
    options = RunFlags(**flags).build_options("webapp")

    assert isinstance(options.leases, LeaderElection)
    giving_up = 2 * options.leases.renew_deadline
    assert pod["terminationGracePeriodSeconds"] >= (options.grace + giving_up).total_seconds()


@pytest.mark.anyio
async def test_the_role_of_the_observability_page_is_accepted(cluster: Cluster) -> None:
    (example,) = find_code_blocks("docs/observability.md", "yaml")

    await cluster.client.apply(yaml.safe_load(example), field_manager="docs", dry_run=True)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_observability_page_has_every_family_with_its_labels(family: metric_families.MetricFamily) -> None:
    labels = ", ".join(f"`{label}`" for label in family.labels)

    assert f"| `{family.name}` | {family.kind} | {labels} |" in read_page("docs/observability.md")


@pytest.mark.slow
def test_every_test_that_a_page_names_exists() -> None:
    tests = "\n".join(file.read_text() for file in REPOSITORY.glob("**/tests/**/test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", read_page("docs/from-controller-runtime.md")))

    assert named
    assert sorted(name for name in named if f"def {name}(" not in tests) == []


def test_every_file_that_the_page_for_migrants_names_exists() -> None:
    named = set(re.findall(r"`((?:packages|tests|bench)/[\w/-]+\.py)`", read_page("docs/from-controller-runtime.md")))

    assert named
    assert sorted(name for name in named if not (REPOSITORY / name).exists()) == []


def test_the_page_for_migrants_has_every_fault_once() -> None:
    listed = re.findall(r"^\| (F\d\d) \|", read_page("docs/from-controller-runtime.md"), re.MULTILINE)

    assert listed == [f"F{number:02}" for number in range(1, 51)]


@pytest.mark.parametrize(
    "command", [run, rbac, upgrade_check, migrate_storage, webhooks], ids=lambda command: command.name
)
def test_the_command_line_page_has_every_option(command: click.Command) -> None:
    assert command.name is not None
    section = read_page("docs/command-line.md").partition(f"## `konverge {command.name} ")[2].partition("\n## ")[0]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    common = {option.name for option in program.params}

    # For a switch that is on, the page has the name that turns it off.
    names = [(option.secondary_opts or option.opts)[0] for option in options if option.name not in common]
    assert [name for name in names if f"`{name}" not in section] == []


@pytest.mark.anyio
async def test_the_operator_of_the_page_about_other_kinds_gives_a_deployment_its_budget(
    cluster: Cluster, tmp_path: Path
) -> None:
    operator = load_page_operator("docs/other-kinds.md", tmp_path)
    operator.registered.classes = operator.registered.classes[:1]  # no cluster of the tests has cert-manager
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "konverge.test/app:1"}]}}
    metadata = {"name": "web", "namespace": cluster.namespace, "labels": {"example.com/budget": "true"}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}

    async def has_budget() -> bool:
        live = await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "web"))
        text = (live["metadata"].get("annotations") or {}).get("conditions.konverge.dev/budgets", "[]")
        return '"type":"BudgetReady","status":"True"' in text

    async with cluster.run_operator(operator):
        await cluster.client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        await cluster.eventually(has_budget, describe="the budget is operational")
