"""Ranges of semantic versions: their contents, invalid ranges and invalid versions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from konverge.component import ComponentBuilder
from konverge.errors import BuildError, KonvergeError
from konverge.feature import VersionConstraint, VersionGate, VersionRange
from konverge.options import gated_by
from konverge.primitives import ConfigMap


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        pytest.param(">=8.5 <9", ["8.5.0", "8.5.1", "8.10.0", "8.99.99"], ["8.4.99", "9.0.0"], id="both bounds"),
        pytest.param(">= 8.5, < 9", ["8.5.0"], ["8.4.0", "9.0.0"], id="blanks and a comma"),
        pytest.param("8.4 || >=8.6", ["8.4.7", "8.6.0"], ["8.3.0", "8.5.0"], id="alternatives"),
        pytest.param("^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"], id="caret"),
        pytest.param("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0"], id="caret before 1.0"),
        pytest.param("^0.0.3", ["0.0.3"], ["0.0.4"], id="caret before 0.1"),
        pytest.param("~1.2.3", ["1.2.3", "1.2.9"], ["1.2.2", "1.3.0"], id="tilde"),
        pytest.param("~1", ["1.0.0", "1.9.0"], ["2.0.0"], id="tilde of one number"),
        pytest.param("1.x", ["1.0.0", "1.9.0"], ["0.9.0", "2.0.0"], id="x"),
        pytest.param("1.2.*", ["1.2.0", "1.2.9"], ["1.3.0"], id="asterisk for a number"),
        pytest.param("1.2", ["1.2.0", "1.2.9"], ["1.3.0"], id="two numbers"),
        pytest.param("v1.2.3", ["1.2.3"], ["1.2.4"], id="three numbers"),
        pytest.param("1.2 - 1.4", ["1.2.0", "1.4.9"], ["1.1.9", "1.5.0"], id="hyphen"),
        pytest.param(">1.2", ["1.3.0"], ["1.2.0", "1.2.9"], id="more than two numbers"),
        pytest.param("<=1.2", ["1.2.9"], ["1.3.0"], id="at most two numbers"),
        pytest.param("*", ["0.0.0", "99.0.0", "1.0.0-rc.1"], [], id="every version"),
        pytest.param(">2 <1", [], ["0.0.0", "1.5.0", "3.0.0"], id="no version"),
    ],
)
def test_a_range_has_the_versions_that_npm_says(text: str, inside: list[str], outside: list[str]) -> None:
    versions = VersionRange(text)
    found = {version: versions.enabled(version) for version in [*inside, *outside]}
    assert found == dict.fromkeys(inside, True) | dict.fromkeys(outside, False)


@pytest.mark.parametrize(
    ("version", "exactly"),
    [
        pytest.param("8.5.1", "8.5.1", id="as semver has it"),
        pytest.param("v1.31.4", "1.31.4", id="v in front"),
        pytest.param("1.31", "1.31.0", id="two numbers"),
        pytest.param("v9", "9.0.0", id="one number"),
        pytest.param(" 8.5.1\n", "8.5.1", id="blanks around it"),
        pytest.param("2024.01.07", "2024.1.7", id="leading zeros"),
        pytest.param("v1.32.9-eks-1", "1.32.9", id="EKS"),
        pytest.param("v1.31.4-gke.1183000", "1.31.4", id="GKE"),
        pytest.param("v1.30.5+k3s1", "1.30.5", id="k3s"),
        pytest.param("v1.29.0-rc.01+build.7", "1.29.0", id="a leading zero in the pre-release"),
    ],
)
def test_versions_are_read_as_clusters_and_authors_write_them(version: str, exactly: str) -> None:
    assert VersionRange(exactly).enabled(version)
    assert not VersionRange(f"<{exactly}").enabled(version)
    assert not VersionRange(f">{exactly}").enabled(version)


@pytest.mark.parametrize(
    ("text", "version", "expected"),
    [
        pytest.param(">=8.6", "8.6.0-rc.1", True, id="it gets what 8.6 will have"),
        pytest.param("<8.6", "8.6.0-rc.1", False, id="and no longer what was before"),
        pytest.param("^8.5.0", "9.0.0-alpha1", False, id="a pre-release of the next major is not compatible"),
        pytest.param("^8.5.0", "8.7.0-SNAPSHOT", True, id="a pre-release inside the range"),
        pytest.param(">=8.6.0-rc.2", "8.6.0-rc.1", False, id="a named pre-release orders: before"),
        pytest.param(">=8.6.0-rc.2", "8.6.0-rc.10", True, id="numbers order as numbers"),
        pytest.param(">=8.6.0-rc.2", "8.6.0", True, id="the release is after its pre-releases"),
        pytest.param("<8.6.0-rc.2", "8.6.0-beta.9", True, id="words order by letter"),
        pytest.param("8.6.0-rc.2", "8.6.0-rc.2", True, id="exactly that pre-release"),
        pytest.param("8.6.0-rc.2", "8.6.0", False, id="and not its release"),
    ],
)
def test_pre_releases(text: str, version: str, expected: bool) -> None:
    assert VersionRange(text).enabled(version) is expected


identifiers = st.sampled_from(["0", "1", "10", "rc", "eks-1", "-"])
suffixes = st.lists(identifiers, max_size=2).map(lambda found: "-" + ".".join(found) if found else "")
numbers = st.lists(st.integers(0, 3), min_size=3, max_size=3).map(lambda found: ".".join(map(str, found)))
versions = st.builds(str.__add__, numbers, suffixes)


@given(version=versions, bound=versions)
def test_of_below_and_from_on_exactly_one_holds(version: str, bound: str) -> None:
    assert VersionRange(f"<{bound}").enabled(version) is not VersionRange(f">={bound}").enabled(version)
    assert VersionRange(f">{bound}").enabled(version) is not VersionRange(f"<={bound}").enabled(version)


NO_RANGE = (
    "cannot read the version range: expected bounds such as '>=8.5 <9', '^1.2', '~1.2', '1.x' or '1.2 - 1.4', "
    "with '||' between alternatives; found {}"
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(" \t ", id="blanks"),
        pytest.param(">=8.5 ||", id="an empty alternative, which npm takes for every version"),
        pytest.param("latest", id="a word"),
        pytest.param(">=", id="no version"),
        pytest.param("8.5 <", id="an operator at the end"),
        pytest.param("!=8.5", id="an operator that there is not"),
        pytest.param("==8.5", id="Python's operator"),
        pytest.param("=>8.5", id="an operator the wrong way"),
        pytest.param("8.5.1.2", id="four numbers"),
        pytest.param(">=08.5", id="a leading zero"),
        pytest.param(">=8.5-rc.1", id="a pre-release of two numbers"),
        pytest.param(">=8.5.1*", id="an asterisk that is no number"),
        pytest.param("1 - 2 - 3", id="two hyphens"),
        pytest.param("≥8.5", id="another sign"),
    ],
)
def test_what_is_no_range_is_refused_when_it_is_made(text: str) -> None:
    with pytest.raises(KonvergeError, match="^" + re.escape(NO_RANGE.format(repr(text))) + "$"):
        VersionGate.for_range("8.5.1", text)


@pytest.mark.parametrize(
    "version", ["", "v", "latest", "8.5.x", "8.5.1.2", "8 .5", "8.5-", "8.5.1-rc..1", "-8.5", "\u0668.\u0665", "8_5"]
)
def test_what_is_no_version_is_refused_when_it_is_asked(version: str) -> None:
    gate = VersionGate.for_range(version, ">=8.5")
    messages = (
        "cannot read the version: expected one to three numbers such as 8.5.1 or v1.31, "
        f"perhaps with a pre-release (8.6.0-rc.1); found {version!r}"
    )
    with pytest.raises(KonvergeError, match="^" + re.escape(messages) + "$"):
        gate.enabled()


@pytest.mark.parametrize(("found", "name"), [(None, "NoneType"), (8.5, "float"), (b"8.5", "bytes")])
def test_what_is_no_text_is_named_by_its_type(found: Any, name: str) -> None:
    with pytest.raises(KonvergeError, match=f"version range: expected text: bounds .*; found {name}$"):
        VersionRange(found)
    with pytest.raises(KonvergeError, match=f"version: expected text: one to three numbers .*; found {name}$"):
        VersionRange("*").enabled(found)


def refusal(ask: Callable[[str], object], text: str) -> str:
    try:
        ask(text)
    except KonvergeError as error:
        return str(error)
    return ""


HOSTILE = ["\t", "1.", "1.2.3-", ">=1 ", "1||", "-", "0-.", "1 - 1", "=", "^1.2||", "~1.2.3 ", "x.", "9", "a\x00"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_text_is_judged_at_once(unit: str) -> None:
    begun = time.process_time()
    for text in (unit * 256, "1.2.3" + unit * 256, ">=" + unit * 256):
        refusal(VersionRange, text[:256])
        refusal(VersionRange("*").enabled, text[:256])
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("unit", HOSTILE)
def test_text_of_a_megabyte_is_refused_at_once_and_not_quoted(unit: str) -> None:
    text = (unit * 1_000_000)[:1_000_000]
    begun = time.process_time()
    messages = [refusal(ask, text) for ask in (VersionRange, VersionRange("*").enabled)]
    spent = time.process_time() - begun

    assert [len(each) < 400 and "at most 256 characters; found 1000000" in each for each in messages] == [True, True]
    assert spent < 0.1


@given(text=st.text(alphabet="0123456789.xv*-+~^<>=|, arc\t", max_size=30))
@example("9" * 256)
def test_any_text_is_a_range_or_refused(text: str) -> None:
    try:
        versions = VersionRange(text)
    except KonvergeError:
        return
    assert isinstance(versions.enabled("1.2.3-rc.1"), bool)


@given(text=st.text(max_size=20) | st.text(alphabet="0123456789.v-+ac", max_size=20))
def test_any_text_is_a_version_or_refused(text: str) -> None:
    every, nothing = VersionRange("*"), VersionRange("<0.0.0")
    try:
        inside = every.enabled(text)
    except KonvergeError:
        return
    assert inside
    assert not nothing.enabled(text)


def test_a_gate_takes_ranges_beside_other_constraints_and_values() -> None:
    gate = VersionGate("8.5.1", [VersionRange(">=8.5"), None, VersionRange("<9")])
    assert gate.enabled()
    assert not gate.when(False).enabled()
    assert VersionGate.for_range("8.5.1", ">=8.5 <9").enabled()
    assert not VersionGate.for_range("9.0.0", ">=8.5 <9").enabled()


def test_a_version_that_nobody_can_read_does_no_harm_to_a_feature_that_is_off() -> None:
    assert not VersionGate.for_range("latest", ">=8.5").when(False).enabled()


def test_a_builder_reports_a_version_that_nobody_can_read() -> None:
    builder = ComponentBuilder("web", condition_type="WebReady").with_resource(
        ConfigMap({"metadata": {"name": "web", "namespace": "default"}}),
        gated_by(VersionGate.for_range("latest", ">=8.5")),
    )
    with pytest.raises(BuildError, match="its gate cannot be evaluated: cannot read the version: .*; found 'latest'"):
        builder.build()


def test_ranges_are_values() -> None:
    assert VersionRange(">=8.5") == VersionRange(">=8.5")
    assert VersionRange(">=8.5") != VersionRange(">=8.6")
    assert len({VersionRange("1.x"), VersionRange("1.x")}) == 1
    assert repr(VersionGate.for_range("8.5.1", "1.x")) == "VersionGate('8.5.1', [VersionRange(text='1.x')]).when(True)"


constraint: VersionConstraint = VersionRange("*")
