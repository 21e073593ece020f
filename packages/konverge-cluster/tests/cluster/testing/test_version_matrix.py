"""Regimes of golden files, the messages when a version leaves its regime, and the check for untested mutations."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from konverge import BooleanGate, Component, ComponentBuilder, Mutation
from konverge.errors import BuildError, KonvergeError
from konverge.kube import Object
from konverge.options import read_only
from konverge.primitives import ConfigMap, ConfigMapMutator, Secret
from konverge_cluster._internal.testing.golden.golden_run import GoldenRun, RunningTest
from konverge_cluster._internal.testing.version_matrix import Expectation
from konverge_cluster._internal.testing.version_matrix.regimes import Firing, describe_differences
from konverge_cluster.testing import Fixture, VersionMatrix, assert_golden

NO_PAIR: Any = ("a", "b", "c")
VERSIONS = ["8.4.0", "8.5.0", "8.6.0", "8.7.0"]
ASSERTED_NOWHERE = "(fixture small at version 8.4.0) is not asserted: require it in a fixture, or exclude it"

Fires: TypeAlias = dict[str, list[str]]
"""The versions at which each mutation fires."""


def config(name: str = "web", **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


def setting(name: str, is_on: bool) -> Mutation[ConfigMapMutator]:
    def set_it(mutator: ConfigMapMutator) -> None:
        mutator.set_entry(name, "on")

    return Mutation(name, set_it, BooleanGate(is_on))


def building(fires: Fires) -> Callable[[str, Any], Component]:
    """Return a build function of one ConfigMap with these mutations."""

    def build(version: str, spec: Any) -> Component:
        mutations = [setting(name, version in versions) for name, versions in fires.items()]
        made = ConfigMap(config(size=str(spec)), mutations=mutations)
        return ComponentBuilder("web", condition_type="WebReady").with_resource(made).build()

    return build


def matrix(
    fires: Fires,
    *,
    requires: list[Expectation] | None = None,
    forbids: list[Expectation] | None = None,
    exclude: list[str] | None = None,
    build: Callable[[str, Any], Any] | None = None,
) -> VersionMatrix[Any]:
    fixture = Fixture("small", 1, requires or [], forbids or [])
    return VersionMatrix(
        "golden/web", versions=VERSIONS, fixtures=[fixture], build=build or building(fires), exclude=exclude or []
    )


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return tmp_path / "golden" / "web"


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Run all cases of a matrix as tests in `tmp_path`; return the failures by the names of the cases."""

    def run(found: VersionMatrix[Any], *, updates: bool = False) -> dict[str, str]:
        failed = {}
        with GoldenRun(updates, tmp_path).run_test(RunningTest(tmp_path / "test_web.py", "test_versions")):
            for case in found.cases():
                try:
                    case.check()
                except (AssertionError, KonvergeError) as error:
                    failed[str(case)] = str(error)
        return failed

    return run


Check: TypeAlias = Callable[..., dict[str, str]]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_regime_has_one_golden_file_named_after_its_first_version(check: Check, golden: Path) -> None:
    found = matrix({"legacy": ["8.4.0", "8.5.0"], "tracing": VERSIONS})

    assert check(found, updates=True) == {}
    assert files(golden) == ["manifest.yaml", "small/8.4.0.yaml", "small/8.6.0.yaml"]
    assert "legacy: 'on'" in (golden / "small/8.4.0.yaml").read_text()
    assert "legacy" not in (golden / "small/8.6.0.yaml").read_text()
    assert check(found) == {}


def test_the_manifest_says_which_versions_fire_what(check: Check, golden: Path) -> None:
    check(matrix({"odd": ["8.5.0", "8.7.0"], "tracing": VERSIONS}), updates=True)

    assert yaml.safe_load((golden / "manifest.yaml").read_text()) == {
        "fixtures": {
            "small": [
                {
                    "golden": "small/8.4.0.yaml",
                    "versions": ["8.4.0", "8.6.0"],
                    "fires": {"v1/ConfigMap/default/web": ["tracing"]},
                },
                {
                    "golden": "small/8.5.0.yaml",
                    "versions": ["8.5.0", "8.7.0"],
                    "fires": {"v1/ConfigMap/default/web": ["odd", "tracing"]},
                },
            ]
        }
    }


def test_a_boundary_that_hand_picked_golden_files_miss_is_found_and_explained(check: Check, tmp_path: Path) -> None:
    before, after = {"legacy": ["8.4.0"]}, {"legacy": ["8.4.0", "8.5.0"]}
    picked = {version: tmp_path / f"{version}.yaml" for version in ("8.4.0", "8.6.0")}
    with GoldenRun(updates=True).run_test(RunningTest(tmp_path / "test_web.py", "test")):
        for version, path in picked.items():
            assert_golden(building(before)(version, 1), path)
    check(matrix(before), updates=True)

    for version, path in picked.items():
        assert_golden(building(after)(version, 1), path)
    failed = check(matrix(after))

    assert sorted(failed) == ["all-versions", "small-8.6.0"]
    assert failed["small-8.6.0"].startswith(
        "there is no golden file golden/web/small/8.6.0.yaml\n"
        "a regime begins at 8.6.0. Compared with 8.5.0: on v1/ConfigMap/default/web, 'legacy' does not fire\n"
        "create it, "
    )
    assert "fixture small: 8.5.0 moved from the regime of 8.5.0 to the regime of 8.4.0\n" in failed["all-versions"]
    assert (
        "8.6.0 moved from the regime of 8.5.0 to the regime of 8.6.0. Compared with 8.5.0: on v1/ConfigMap/"
        in (failed["all-versions"])
    )
    assert failed["all-versions"].endswith("no regime has the golden file golden/web/small/8.5.0.yaml: delete it")


def test_a_change_inside_a_regime_shows_in_its_golden_file(check: Check, golden: Path) -> None:
    check(matrix({"legacy": ["8.4.0"]}), updates=True)

    failed = check(
        matrix({"legacy": ["8.4.0"]}, build=lambda version, spec: building({"legacy": ["8.4.0"]})(version, 2))
    )

    assert sorted(failed) == ["small-8.4.0", "small-8.5.0"]
    assert "-  size: '1'\n+  size: '2'\n" in failed["small-8.5.0"]


def test_one_name_behind_two_gates_of_two_objects_makes_a_boundary(check: Check, golden: Path) -> None:
    def build(version: str, spec: object) -> Component:
        builder = ComponentBuilder("web", condition_type="WebReady")
        for name, is_on in (("a", version < "8.6.0"), ("b", version >= "8.6.0")):
            builder.with_resource(ConfigMap(config(name), mutations=setting("compatible", is_on)))
        return builder.build()

    assert len({build(version, 1).firing_set() for version in VERSIONS}) == 1
    check(matrix({}, build=build), updates=True)
    assert files(golden / "small") == ["8.4.0.yaml", "8.6.0.yaml"]


def test_an_object_that_comes_with_a_version_makes_a_boundary(check: Check) -> None:
    def build(version: str, spec: object) -> Component:
        return (
            ComponentBuilder("web", condition_type="WebReady")
            .with_resource(ConfigMap(config()))
            .include_when(version >= "8.5.0", lambda: ConfigMap(config("new")))
            .build()
        )

    assert "Compared with 8.4.0: v1/ConfigMap/default/new is managed\n" in check(matrix({}, build=build))["small-8.5.0"]


def test_what_is_not_managed_makes_no_boundary(check: Check, golden: Path) -> None:
    def build(version: str, spec: object) -> Component:
        seen = ConfigMap(config("seen"), mutations=setting("legacy", version == "8.4.0"))
        builder = ComponentBuilder("web", condition_type="WebReady").with_resource(ConfigMap(config()))
        return builder.with_resource(seen, read_only()).build()

    check(matrix({}, build=build), updates=True)

    assert files(golden / "small") == ["8.4.0.yaml"]


A, B = ("a", ("x", "y")), ("b", ())


@pytest.mark.parametrize(
    ("firing", "than", "message"),
    [
        ((A, B), (A, B), ""),
        ((A, B), (B, A), "the objects come in another order"),
        ((A,), (("a", ("y", "x")),), "on a, the mutations fire in another order"),
        ((A,), (("a", ()),), "on a, 'x' and 'y' fire"),
        ((("a", ()),), (A,), "on a, 'x' and 'y' do not fire"),
        ((A, B), (("a", ("y", "z")),), "on a, 'x' fires, 'z' does not fire; b is managed"),
        ((A,), (A, B), "b is not managed"),
    ],
)
def test_the_difference_of_two_regimes_is_a_sentence(firing: Firing, than: Firing, message: str) -> None:
    assert describe_differences(firing, than) == message


def test_a_primitive_alone_has_a_matrix_too(check: Check, golden: Path) -> None:
    def build(version: str, spec: object) -> ConfigMap:
        return ConfigMap(config(), mutations=setting("legacy", version == "8.4.0"))

    assert check(matrix({}, build=build), updates=True) == {}
    assert files(golden / "small") == ["8.4.0.yaml", "8.5.0.yaml"]


def test_update_deletes_no_golden_file_and_the_matrix_says_which_to_delete(check: Check, golden: Path) -> None:
    check(matrix({"legacy": ["8.4.0"]}), updates=True)

    for updates in (True, False):
        assert check(matrix({"legacy": []}), updates=updates) == {
            "all-versions": "no regime has the golden file golden/web/small/8.5.0.yaml: delete it"
        }
    assert (golden / "small/8.5.0.yaml").exists()


def test_the_manifest_explains_a_version_that_is_gone_without_failing_on_it(check: Check, golden: Path) -> None:
    check(matrix({"legacy": ["8.4.0"]}), updates=True)
    later = VersionMatrix(
        "golden/web", versions=VERSIONS[2:], fixtures=[Fixture("small", 1)], build=building({"legacy": ["8.4.0"]})
    )

    assert "8.6.0 moved from the regime of 8.5.0 to the regime of 8.6.0\n" in check(later)["all-versions"]


@pytest.mark.parametrize("manifest", ["", "[]", "fixtures: 3", "fixtures: {small: [{versions: []}]}", "{", "[" * 1000])
def test_a_manifest_that_somebody_broke_differs(manifest: str, check: Check, golden: Path) -> None:
    check(matrix({}), updates=True)
    (golden / "manifest.yaml").write_text(manifest)

    failed = check(matrix({}))

    assert list(failed) == ["all-versions"]
    assert "differ from the golden file golden/web/manifest.yaml" in failed["all-versions"]


@pytest.mark.parametrize(
    ("expects", "failed"),
    [
        ({"requires": ["legacy", "tracing"]}, {}),
        ({"requires": [("legacy", "8.4.0"), ("tracing", "8.7.0")]}, {}),
        ({"forbids": [("legacy", "8.5.0"), "gone"]}, {}),
        (
            {"requires": [("legacy", "8.5.0")]},
            {
                "small-8.5.0": "fixture small: mutation 'legacy' is required and does not fire at 8.5.0; "
                "firing mutations: tracing"
            },
        ),
        (
            {"requires": [("gone", "8.5.0")]},
            {
                "small-8.5.0": "fixture small: mutation 'gone' is required and does not fire at 8.5.0; "
                "firing mutations: tracing"
            },
        ),
        (
            {"requires": ["traceing"]},
            {
                "all-versions": "fixture small: mutation 'traceing' is required and fires at no version; "
                "firing mutations: legacy, tracing; did you mean 'tracing'?"
            },
        ),
        (
            {"forbids": ["legacy"]},
            {
                "small-8.4.0": "fixture small: mutation 'legacy' is forbidden and fires at 8.4.0, "
                "on v1/ConfigMap/default/web"
            },
        ),
        (
            {"forbids": [("tracing", "8.6.0")]},
            {
                "small-8.6.0": "fixture small: mutation 'tracing' is forbidden and fires at 8.6.0, "
                "on v1/ConfigMap/default/web"
            },
        ),
    ],
)
def test_what_is_required_and_forbidden_is_asked(expects: dict[str, Any], failed: dict[str, str], check: Check) -> None:
    assert check(matrix({"legacy": ["8.4.0"], "tracing": VERSIONS, "gone": []}, **expects), updates=True) == failed


def test_a_broken_expectation_and_a_difference_are_reported_together(check: Check) -> None:
    (failure,) = [
        message for name, message in check(matrix({}, requires=[("x", "8.4.0")])).items() if name == "small-8.4.0"
    ]

    assert (
        "mutation 'x' is required and does not fire at 8.4.0; no mutation fires\n\nthere is no golden file" in failure
    )


def test_a_complete_matrix_passes() -> None:
    fires = {"legacy": ["8.4.0"], "tracing": VERSIONS, "never": []}

    matrix(fires, requires=["legacy", ("tracing", "8.4.0")], exclude=["never"]).assert_complete()


@pytest.mark.parametrize(
    ("expects", "failure"),
    [
        (
            {"requires": ["tracing"]},
            f"mutation 'legacy' {ASSERTED_NOWHERE}",
        ),
        (
            {"requires": ["tracing"], "forbids": ["legacy"]},
            f"mutation 'legacy' {ASSERTED_NOWHERE}",
        ),
        (
            {"requires": ["tracing", "legacy", "tracin"]},
            "fixture small, requires: no mutation is named 'tracin'; did you mean 'tracing'?",
        ),
        (
            {"requires": ["tracing", "legacy"], "exclude": ["old"]},
            "exclude: no mutation is named 'old'",
        ),
        (
            {"requires": ["tracing", "legacy"], "forbids": ["legacyy", ("legacyy", "8.5.0")]},
            "fixture small, forbids: no mutation is named 'legacyy'; did you mean 'legacy'?",
        ),
    ],
)
def test_an_incomplete_matrix_fails(expects: dict[str, Any], failure: str) -> None:
    with pytest.raises(AssertionError) as raised:
        matrix({"legacy": ["8.4.0"], "tracing": VERSIONS}, **expects).assert_complete()

    assert str(raised.value) == failure


def test_a_mutation_without_a_name_is_reported() -> None:
    class Custom(ConfigMap):
        def registered_mutations(self) -> tuple[str, ...]:
            return ("",)

    with pytest.raises(AssertionError, match=r"^a mutation has no name \(fixture small at version 8.4.0\)"):
        matrix({}, build=lambda version, spec: Custom(config())).assert_complete()


def test_completeness_hides_no_failure_and_calls_nothing_stale_that_may_be_hidden_by_one() -> None:
    def build(version: str, spec: Any) -> Component:
        if version == "8.5.0":
            raise ValueError("no such version")
        return building({"tracing": VERSIONS})(version, spec)

    with pytest.raises(AssertionError) as raised:
        matrix({}, requires=["from-8.5.0"], build=build).assert_complete()

    assert str(raised.value).split("\n\n") == [
        "failed to build fixture small at version 8.5.0: ValueError: no such version",
        f"mutation 'tracing' {ASSERTED_NOWHERE}",
    ]


def test_what_cannot_be_built_fails_its_cases_with_its_place(check: Check) -> None:
    failed = check(matrix({}, build=lambda version, spec: {"kind": "ConfigMap"}))

    assert set(failed.values()) == {
        "failed to build fixture small at version 8.4.0: build: expected a component or a primitive, found dict"
    }
    assert len(failed) == len(VERSIONS) + 1


def test_a_gate_that_fails_is_said_with_its_place(check: Check) -> None:
    class Fails:
        def enabled(self) -> bool:
            raise ValueError("cannot read 8.x")

    def build(version: str, spec: object) -> ConfigMap:
        return ConfigMap(config(), mutations=Mutation("x", lambda mutator: None, Fails()))

    assert (
        "the gates of fixture small at version 8.4.0: failed to evaluate the gate of mutation x of resource v1/"
        in (check(matrix({}, build=build))["all-versions"])
    )


def test_nothing_is_built_before_a_case_is_checked() -> None:
    built = []

    assert list(map(str, matrix({}, build=lambda version, spec: built.append(version)).cases())) == [
        *(f"small-{version}" for version in VERSIONS),
        "all-versions",
    ]
    assert built == []


def test_a_new_version_in_an_old_regime_changes_the_manifest_alone(check: Check) -> None:
    def up_to(count: int) -> VersionMatrix[Any]:
        fixtures = [Fixture("small", 1)]
        return VersionMatrix("golden/web", versions=VERSIONS[:count], fixtures=fixtures, build=building({}))

    check(up_to(3), updates=True)
    failed = check(up_to(4))

    assert list(failed) == ["all-versions"]
    assert "+    - 8.7.0\n" in failed["all-versions"]
    assert "was in the regime" not in failed["all-versions"]


def test_values_of_secrets_are_hidden_unless_asked_for(check: Check, golden: Path) -> None:
    def secrets(value: str, *, reveal_secrets: bool) -> VersionMatrix[Any]:
        def build(version: str, spec: object) -> Secret:
            return Secret({"metadata": {"name": "web", "namespace": "default"}, "stringData": {"password": value}})

        fixtures = [Fixture("small", None)]
        return VersionMatrix(
            "golden/web", versions=VERSIONS, fixtures=fixtures, build=build, reveal_secrets=reveal_secrets
        )

    check(secrets("one", reveal_secrets=False), updates=True)
    assert check(secrets("two", reveal_secrets=False)) == {}
    assert "one" not in (golden / "small/8.4.0.yaml").read_text()
    check(secrets("one", reveal_secrets=True), updates=True)
    assert "-  password: one\n+  password: two\n" in check(secrets("two", reveal_secrets=True))["small-8.4.0"]


@pytest.mark.parametrize(
    ("arguments", "mistakes"),
    [
        ({"versions": []}, ["versions: expected at least one, found none"]),
        ({"versions": "8.4.0"}, ["versions: expected a list, found '8.4.0'"]),
        ({"versions": iter(["8.4.0"])}, ["versions: expected a list, found a list_iterator"]),
        ({"versions": [8.4]}, ["versions[0]: expected text, found 8.4"]),
        ({"versions": ["8.4.0", "8.4.0"]}, ["versions[1]: '8.4.0' occurs twice"]),
        (
            {"versions": ["../8.4.0"], "fixtures": [Fixture("a/b", 1)]},
            [
                "versions[0]: '../8.4.0' cannot be a file name: expected letters, digits, then also . _ + -",
                "fixtures[0].name: 'a/b' cannot be a file name: expected letters, digits, then also . _ + -",
            ],
        ),
        ({"fixtures": []}, ["fixtures: expected at least one, found none"]),
        ({"fixtures": [{"name": "small"}]}, ["fixtures[0]: expected a Fixture, found a dict"]),
        ({"fixtures": [Fixture("a", 1), Fixture("a", 2)]}, ["fixtures[1].name: 'a' occurs twice"]),
        (
            {"fixtures": [Fixture("a", 1, requires="tracing", forbids=[NO_PAIR, ""])]},
            [
                "fixtures[0].requires: expected a list of mutations, found 'tracing'",
                "fixtures[0].forbids[0]: expected the name of a mutation, or a pair of a name and a version, "
                "found a tuple",
                "fixtures[0].forbids[1]: expected the name of a mutation, or a pair of a name and a version, found ''",
            ],
        ),
        (
            {"fixtures": [Fixture("a", 1, requires=["x", ("legacy", "8.4")])]},
            ["fixtures[0].requires[1]: 'legacy' is meant for '8.4', expected one of versions; did you mean '8.4.0'?"],
        ),
        (
            {"fixtures": [Fixture("a", 1, requires=["x", ("y", "8.4.0")], forbids=["y", "x"])]},
            ["fixtures[0].requires[0]: 'x' is forbidden too", "fixtures[0].requires[1]: 'y' is forbidden too"],
        ),
        (
            {"fixtures": [Fixture("a", 1, requires=["x"])], "exclude": ["x"]},
            ["exclude[0]: 'x' is required by fixture 'a': it needs no exception"],
        ),
        ({"exclude": "x"}, ["exclude: expected a list, found 'x'"]),
        ({"exclude": [None]}, ["exclude[0]: expected the name of a mutation, found None"]),
        ({"build": None}, ["build: expected a function, found NoneType"]),
    ],
)
def test_wrong_arguments_are_reported_at_once(arguments: dict[str, Any], mistakes: list[str]) -> None:
    right: dict[str, Any] = {"versions": VERSIONS, "fixtures": [Fixture("small", 1)], "build": building({})}

    with pytest.raises(BuildError, match=re.escape("version matrix golden/web cannot be built")) as raised:
        VersionMatrix("golden/web", **{**right, **arguments})

    assert list(raised.value.errors) == mistakes


MODULE = """
import pytest
from konverge import BooleanGate, Mutation
from konverge.primitives import ConfigMap
from konverge_cluster.testing import Fixture, VersionMatrix

def web(version, size):
    legacy = Mutation("legacy", lambda config: config.set_entry("legacy", "on"), BooleanGate(version == "8.4.0"))
    metadata = {"name": "web", "namespace": "default"}
    return ConfigMap({"metadata": metadata, "data": {"size": size}}, mutations=legacy)

FIXTURES = [Fixture("small", "1", ["legacy"])]
MATRIX = VersionMatrix("golden/web", versions=["8.4.0", "8.5.0"], fixtures=FIXTURES, build=web)

@pytest.mark.parametrize("case", MATRIX.cases(), ids=str)
def test_web(case):
    case.check()

def test_complete():
    MATRIX.assert_complete()
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_a_module_runs_a_matrix(pytester: pytest.Pytester, workers: list[str]) -> None:
    pytester.makeconftest('pytest_plugins = ["konverge_cluster.pytest_plugin"]')
    pytester.makepyfile(test_web=MODULE)

    def run(*arguments: str) -> pytest.RunResult:
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments, *workers)

    run().assert_outcomes(failed=3, passed=1)
    written = run("--update-golden")
    written.assert_outcomes(passed=4)
    assert [line for line in written.outlines if line.startswith("konverge: wrote")] == [
        "konverge: wrote golden/web/manifest.yaml (new)",
        "konverge: wrote golden/web/small/8.4.0.yaml (new)",
        "konverge: wrote golden/web/small/8.5.0.yaml (new)",
    ]
    run("--stale-golden").assert_outcomes(passed=4)
