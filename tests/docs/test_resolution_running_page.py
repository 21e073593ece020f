"""docs/resolution/running.md and the keys in replacing-tekton.md: the tables match the code."""

from __future__ import annotations

import re

import yaml
from click.testing import CliRunner

from konverge.observability import Metrics
from konverge_resolution._internal.cli.resolvers import resolvers
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.requests.metrics import RequestMetrics
from konverge_resolution._internal.requests.policy_parsing import parse_policy
from konverge_resolution._internal.requests.resolution_config import GENERAL_SETTINGS
from konverge_resolution._internal.requests.resolver_packaging import ResolverPackaging, package_resolvers
from konverge_resolution._internal.requests.tekton_settings import IGNORED
from konverge_resolution._internal.resolvers import STANDARD, load_resolvers
from tests.docs.pages import find_code_blocks, read_page

PAGE = "docs/resolution/running.md"


def test_the_settings_for_all_are_those_of_the_code() -> None:
    head = "| setting | type | what it does | default |\n|---|---|---|---|\n"
    rows = [
        f"| `{key}` | {each.type} | {each.description} | {f'`{each.default}`' if each.default else ''} |\n"
        for key, each in GENERAL_SETTINGS.items()
    ]
    assert head + "".join(rows) + "\n" in read_page(PAGE)


def test_the_policy_of_the_page_is_one() -> None:
    assert isinstance(parse_policy(yaml.safe_load(find_code_blocks(PAGE, "yaml")[0])), Policy)


def test_the_commands_of_the_page_have_these_options() -> None:
    known = {option for command in resolvers.commands.values() for each in command.params for option in each.opts}
    known |= {"--no-lifecycle", "--server-side"}
    assert set(re.findall(r"(?<!-)--[a-z][a-z-]+", read_page(PAGE))) - known == {"--depth"}
    answer = CliRunner().invoke(resolvers, ["package", "--only", "git,http"])
    assert answer.exit_code == 0
    assert "konverge-resolver-http" in answer.output


def test_the_rights_of_each_resolver_are_those_of_its_role() -> None:
    common = rights()
    for name in STANDARD:
        (row,) = re.findall(rf"^\| `{name}` \|(.*)\|(.*)\|$", read_page(PAGE), re.MULTILINE)
        text = " ".join(row).lower()
        found = rights(name) - common
        assert {word for word in ("secrets", "serviceaccounts", "subjectaccessreviews") if word in text} == found


def rights(*names: str) -> set[str]:
    """Return the resources of the rules in the table."""
    found = package_resolvers(load_resolvers(names), ResolverPackaging("image", credentials_in=("*",)))
    rules = [rule for each in found if each["kind"] == "ClusterRole" for rule in each["rules"]]
    # The page requires authentication of metrics clients in any case.
    every = {resource for rule in rules for resource in rule["resources"]} & {"secrets", "serviceaccounts"}
    return every | ({"subjectaccessreviews"} if "cluster" in names else set())


def test_the_metrics_and_volumes_of_the_page_are_there() -> None:
    metrics = Metrics()
    RequestMetrics(metrics)
    there = {each.name for each in metrics.registry.collect()}
    assert {name.removesuffix("_total") for name in re.findall(r"`(konverge_resolution_\w+)`", read_page(PAGE))} == {
        name for name in there if name.startswith("konverge_resolution")
    }
    packaged = str(package_resolvers(load_resolvers(STANDARD), ResolverPackaging("image", credentials_in=("*",))))
    for name in ("konverge-resolver-git-tokens", "konverge-resolution-trusted-root", "/tokens"):
        assert name in packaged
        assert name in read_page(PAGE)


def test_the_keys_that_change_nothing_are_those_of_the_code() -> None:
    rows = [f"| {name} | `{key}` | {why} |\n" for name, keys in IGNORED.items() for key, why in keys.items()]
    head = "| resolver | changes nothing | why |\n|---|---|---|\n"
    assert head + "".join(rows) + "\n" in read_page("docs/resolution/replacing-tekton.md")
