"""`VersionMatrix`: tests for each combination of version and fixture."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from konverge._internal.component import Component
from konverge._internal.mutation import wrap_author_errors
from konverge._internal.primitives.argument_validation import validate_function
from konverge._internal.primitives.resource_protocol import Resource
from konverge._internal.suggestions import did_you_mean
from konverge.errors import BuildError, KonvergeError
from konverge_cluster._internal.testing.golden.assertions import check_golden_text
from konverge_cluster._internal.testing.golden.golden_run import get_current_run
from konverge_cluster._internal.testing.golden.serialization import serialize
from konverge_cluster._internal.testing.version_matrix.argument_validation import find_contradictions, find_shape_errors
from konverge_cluster._internal.testing.version_matrix.fixtures import (
    Fixture,
    find_failures_at,
    find_failures_everywhere,
    parse_expectations,
)
from konverge_cluster._internal.testing.version_matrix.regime_manifest import (
    MANIFEST,
    describe_changes,
    format_manifest,
    read_regimes,
)
from konverge_cluster._internal.testing.version_matrix.regimes import (
    Firing,
    Regime,
    describe_differences,
    find_firing,
    group_regimes,
)

__all__ = ["MatrixCase", "VersionMatrix"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class MatrixCase:
    """One test of a matrix; its string form is its name.

    Attributes:
        name: The fixture and the version, or ``all-versions``.
        check: The assertion. It raises an `AssertionError` that lists all failures, and a
            `konverge.errors.KonvergeError` if a component cannot be built or rendered.
    """

    name: str
    check: Callable[[], None]

    def __str__(self) -> str:
        return self.name


class VersionMatrix(Generic[S]):
    """Tests for each combination of version and fixture.

    A test module defines it as a value and runs its cases::

        MATRIX = VersionMatrix("golden/web", versions=["8.4.0", "8.5.0"], fixtures=[Fixture("small", spec)], build=web)

        @pytest.mark.parametrize("case", MATRIX.cases(), ids=str)
        def test_web_at_each_version(case):
            case.check()

        def test_every_mutation_of_web_is_asserted():
            MATRIX.assert_complete()

    Args:
        folder: The folder of the golden files, used by no other matrix. A relative path starts at the running test's
            file.
        versions: All supported versions in order. They are passed on unchanged: the gates interpret them.
        fixtures: The specs.
        build: Returns the component or the primitive for a version and a fixture's spec. Its result must depend on
            nothing else: each case calls it again.
        exclude: Mutations that no fixture must require.
        reveal_secrets: Write the values of Secrets into the golden files (`konverge_cluster.testing.serialize`).

    Raises:
        konverge.errors.BuildError: The arguments are invalid; the error lists everything that is wrong. Nothing is
            built yet.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        versions: Sequence[str],
        fixtures: Sequence[Fixture[S]],
        build: Callable[[str, S], Component | Resource],
        exclude: Sequence[str] = (),
        reveal_secrets: bool = False,
    ) -> None:
        self._folder = Path(folder)
        errors = [*find_shape_errors(versions, fixtures, exclude), *validate_function("build", build)]
        # Contradictions can only be found in arguments of the right shape.
        errors = errors or [*find_contradictions(versions, fixtures, exclude)]
        if errors:
            raise BuildError(f"version matrix {self._folder}", errors)
        self._versions = tuple(versions)
        self._fixtures = tuple(fixtures)
        self._build = build
        self._exclude = tuple(exclude)
        self._reveal_secrets = reveal_secrets

    def cases(self) -> list[MatrixCase]:
        """Return the tests: one for each fixture at each version, and ``all-versions`` for checks across versions.

        The test of a version checks its required and forbidden mutations and, for the first version of a regime, the
        golden file. ``all-versions`` compares the manifest, checks mutations that are required at any version, and
        finds golden files without a regime. Nothing is built before a case runs.
        """
        version_cases = [
            MatrixCase(f"{fixture.name}-{version}", partial(self._check_version, fixture, version))
            for fixture in self._fixtures
            for version in self._versions
        ]
        return [*version_cases, MatrixCase("all-versions", self._check_all_versions)]

    def assert_complete(self) -> None:
        """Fail unless a fixture requires each mutation that is registered at any version, or the matrix excludes it.

        The failure lists all mutations that are not asserted or have no name, and all required, forbidden or excluded
        names without a mutation. Components that cannot be built are listed too, and do not hide the other failures. In
        that case unknown names are not reported, since the missing components may register them.

        Raises:
            AssertionError: The message lists all failures.
        """
        __tracebackhide__ = True
        failures: list[str] = []
        registered: dict[str, str] = {}
        for fixture in self._fixtures:
            for version in self._versions:
                try:
                    names = self._build_subject(fixture, version).registered_mutations()
                except KonvergeError as error:
                    failures.append(str(error))
                    continue
                for name in names:
                    registered.setdefault(name, _format_location(fixture, version))
        is_all_built = not failures
        required = {name for fixture in self._fixtures for name, _ in parse_expectations(fixture.requires)}
        for name, place in registered.items():
            if not name:
                failures.append(f"a mutation has no name ({place}): golden files and errors need the name")
            elif name not in required and name not in self._exclude:
                failures.append(f"mutation {name!r} ({place}) is not asserted: require it in a fixture, or exclude it")
        if is_all_built:
            failures += [
                f"{place}: no mutation is named {name!r}{did_you_mean(name, registered)}"
                for place, name in self._list_expectations()
                if name not in registered
            ]
        _raise_failures(failures)

    def _list_expectations(self) -> Iterable[tuple[str, str]]:
        """Return every mutation that the matrix names, with the path of the argument."""
        expectations = [("exclude", name) for name in self._exclude]
        for fixture in self._fixtures:
            expectations += [
                (f"fixture {fixture.name}, requires", name) for name, _ in parse_expectations(fixture.requires)
            ]
            expectations += [
                (f"fixture {fixture.name}, forbids", name) for name, _ in parse_expectations(fixture.forbids)
            ]
        return dict.fromkeys(expectations)

    def _check_version(self, fixture: Fixture[S], version: str) -> None:
        __tracebackhide__ = True
        firings = self._find_firings(fixture)
        failures = list(find_failures_at(fixture, version, firings[version]))
        if any(regime.first == version for regime in group_regimes(firings)):
            golden = self._folder / fixture.name / f"{version}.yaml"
            text = self._serialize(fixture, version)
            try:
                check_golden_text(
                    text, golden, reveal_secrets=self._reveal_secrets, note=self._describe_transition(version, firings)
                )
            except AssertionError as difference:
                failures.append(str(difference))
        _raise_failures(failures)

    def _describe_transition(self, version: str, firings: dict[str, Firing]) -> str:
        """Return the difference between a regime's first version and the version before it; empty for the first."""
        index = self._versions.index(version)
        if not index:
            return ""
        before = self._versions[index - 1]
        return (
            f"a regime begins at {version}. Compared with {before}: "
            f"{describe_differences(firings[version], firings[before])}"
        )

    def _check_all_versions(self) -> None:
        __tracebackhide__ = True
        run = get_current_run()
        folder = run.find_path(self._folder)
        recorded = read_regimes(folder / MANIFEST)
        failures: list[str] = []
        regimes: dict[str, list[Regime]] = {}
        changed: list[str] = []
        for fixture in self._fixtures:
            firings = self._find_firings(fixture)
            failures += find_failures_everywhere(fixture, firings)
            regimes[fixture.name] = group_regimes(firings)
            changed += describe_changes(fixture.name, recorded.get(fixture.name, {}), regimes[fixture.name], firings)
        try:
            check_golden_text(format_manifest(regimes), folder / MANIFEST, note="\n".join(changed))
        except AssertionError as difference:
            failures.append(str(difference))
        used = {folder / name / f"{regime.first}.yaml" for name, group in regimes.items() for regime in group}
        stale = sorted({*folder.rglob("*.yaml")} - used - {folder / MANIFEST})
        failures += [f"no regime has the golden file {run.format_path(path)}: delete it" for path in stale]
        _raise_failures(failures)

    def _build_subject(self, fixture: Fixture[S], version: str) -> Component | Resource:
        with wrap_author_errors(f"failed to build {_format_location(fixture, version)}"):
            built: Any = self._build(version, fixture.spec)
            # A resource is recognized by its methods, since any class can implement the protocol.
            if not isinstance(built, Component) and not callable(getattr(built, "firing_set", None)):
                raise KonvergeError(f"build: expected a component or a primitive, found {type(built).__name__}")
            subject: Component | Resource = built
            return subject

    def _find_firings(self, fixture: Fixture[S]) -> dict[str, Firing]:
        firings = {}
        for version in self._versions:
            built = self._build_subject(fixture, version)
            with wrap_author_errors(f"failed to evaluate the gates of {_format_location(fixture, version)}"):
                firings[version] = find_firing(built)
        return firings

    def _serialize(self, fixture: Fixture[S], version: str) -> str:
        built = self._build_subject(fixture, version)
        with wrap_author_errors(f"failed to render {_format_location(fixture, version)}"):
            return serialize(built, reveal_secrets=self._reveal_secrets)


def _raise_failures(failures: list[str]) -> None:
    __tracebackhide__ = True
    if failures:
        raise AssertionError("\n\n".join(failures))


def _format_location(fixture: Fixture[Any], version: str) -> str:
    return f"fixture {fixture.name} at version {version}"
