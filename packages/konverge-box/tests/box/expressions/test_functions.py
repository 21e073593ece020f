"""The functions of expressions, one by one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SeededEntropy
from konverge_box._internal.expressions.functions import GROUPS, LIBRARY
from konverge_box._internal.expressions.functions.docs_page import build_functions_page
from konverge_box.expressions import EvaluationEnvironment, ExpressionError, compile_expression, reveal_sensitive

NOW = EvaluationEnvironment(now=datetime(2026, 11, 22, 23, 30, tzinfo=UTC), entropy=SeededEntropy(7))
POD = {"containers": [
    {"name": "web", "image": "nginx:1", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]},
    {"name": "side", "image": "envoy:2", "ports": [{"containerPort": 9000}, {"name": "admin", "containerPort": 9001}]},
]}  # fmt: skip
SCOPE: dict[str, Any] = {
    "spec": {"a": {"b": [{"c": 5}], "t": "x", "n": None, "f": False}, "empty": {}},
    "deployment": {
        "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "generation": 4, "labels": {"a.b/c": "d"}, "annotations": {"e": "f"},
        },
        "spec": {"replicas": 3, "template": {"spec": POD}},
        "status": {
            "observedGeneration": 4, "replicas": 3, "readyReplicas": 2, "availableReplicas": 3, "updatedReplicas": 3,
            "phase": "Running",
            "conditions": [{"type": "Available", "status": "True", "reason": "Enough", "message": "It is"}],
        },
    },
    "service": {
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}, {"port": 81, "nodePort": 30080}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "hostname": "lb.example"}]}},
    },
    "slice": {"endpoints": [{"conditions": {"ready": False}}, {"conditions": {"ready": True}}]},
    "job": {"status": {"active": 1, "conditions": [{"type": "Complete", "status": "True"}]}},
    "seen": {"found": "false", "metadata": {"name": "x"}},
}  # fmt: skip

VALUES: list[tuple[str, Any]] = [
    # Choices
    ("coalesce(spec.none, spec.a.n, '', 0, 5)", 0),
    ("coalesce(spec.none)", None),
    ("coalesce()", None),
    ("ternary(true, 1, 2)", 1),
    ("ternary(false, 1, 2)", 2),
    ("boolTernary(spec.none, 1, 2)", 2),
    ("boolTernary('yes', 1, 2)", 1),
    ("boolDefault(spec.a.f, true)", False),
    ("boolDefault(spec.none, true)", True),
    ("eqTernary(spec.a.t, 'x', 1, 2)", 1),
    ("eqTernary(spec.none, 'x', 1, 2)", 2),
    ("empty(spec.none)", True),
    ("empty(spec.empty)", True),
    ("empty(0)", False),
    ("empty(false)", False),
    ("notEmpty('a')", True),
    # Absent values
    ("get(spec, 'a.b.0.c')", 5),
    ("get(spec, 'a.x.y')", None),
    ("get(none_at_all, 'a')", None),
    ("get(deployment, ['metadata', 'labels', 'a.b/c'])", "d"),
    ("getOr(spec, 'a.n', 7)", 7),
    ("getOr(spec, 'a.f', 7)", False),
    ("getStringOr(spec, 'a.b', 'z')", "z"),
    ("getStringOr(spec, 'a.t', 'z')", "x"),
    ("getIntOr(spec, 'a.b.0.c', 1)", 5),
    ("getIntOr(spec, 'a.f', 1)", 1),
    ("getBoolOr(spec, 'a.f', true)", False),
    ("getBoolOr(spec, 'a.t', true)", True),
    ("require(spec.a.t, 'say t')", "x"),
    # Types
    ("toInt(' 42 ')", 42),
    ("toInt(-2.9)", -2),
    ("toInt(true)", 1),
    ("toFloat('1e3')", 1000.0),
    ("toFloat(2)", 2.0),
    ("toBool('Off')", False),
    ("toBool(1)", True),
    ("toString(1.0)", "1"),
    ("toString(true)", "true"),
    ("asList(spec.none)", []),
    ("asList('a')", ["a"]),
    ("asList([1])", [1]),
    ("asMap('a')", {}),
    ("asMap(spec.empty)", {}),
    ("asString(spec.none)", ""),
    ("asString(5)", "5"),
    ("typeOf(spec)", "map"),
    ("typeOf([])", "list"),
    ("typeOf('')", "string"),
    ("typeOf(1.5)", "number"),
    ("typeOf(true)", "bool"),
    ("typeOf(null)", "null"),
    ("typeOf(spec.none)", "absent"),
    ("typeMap(spec)", True),
    ("typeList('[]')", False),
    ("typeString(1)", False),
    ("typeNumber(true)", False),
    ("typeBool(false)", True),
    ("typeNull(spec.none)", False),
    ("typeNull(spec.a.n)", True),
    ("isScalar(0)", True),
    ("isScalar(null)", False),
    ("isComposite([])", True),
    ("len('äö')", 2),
    ("len(spec)", 2),
    # Strings
    ("toLower('ÄB')", "äb"),
    ("toUpper('ab')", "AB"),
    ("trimSpace(' a\n')", "a"),
    ("trim('--a-', '-')", "a"),
    ("trim('a', '')", "a"),
    ("trimPrefix('v1', 'v')", "1"),
    ("trimPrefix('1', 'v')", "1"),
    ("trimSuffix('a.yaml', '.yaml')", "a"),
    ("hasPrefix('abc', 'ab')", True),
    ("hasSuffix('abc', 'ab')", False),
    ("contains('abc', 'b')", True),
    ("matches('web-1', '-[0-9]+$')", True),
    ("matches('web', '^eb')", False),
    ("replace('a.b.c', '.', '-')", "a-b-c"),
    ("split('a,b', ',')", ["a", "b"]),
    ("split('', ',')", []),
    ("join(['a', 1, true], '-')", "a-1-true"),
    ("join([])", ""),
    ("repeat('ab', 2)", "abab"),
    ("repeat('ab', -1)", ""),
    ("camelToKebab('maxHTTPPoolSize2')", "max-http-pool-size2"),
    ("truncate('abcdef', 4, '…')", "abc…"),
    ("truncate('abc', 4)", "abc"),
    ("indent('a\n\nb', 2)", "  a\n\n  b"),
    # Numbers
    ("add(1, 2, 3)", 6),
    ("add(0.5, 1)", 1.5),
    ("sub(5, 2)", 3),
    ("mul(2, 3, 4)", 24),
    ("div(7, 2)", 3),
    ("div(-7, 2)", -3),
    ("div(7.0, 2)", 3.5),
    ("mod(-7, 2)", -1),
    ("mod(7.5, 2)", 1.5),
    ("min(3, 1, 2)", 1),
    ("max(3)", 3),
    ("clamp(12, 1, 10)", 10),
    ("clamp(0, 1, 10)", 1),
    ("abs(-3)", 3),
    ("floor(-1.5)", -2),
    ("ceil(1.2)", 2),
    ("round(2.5)", 3),
    ("round(-2.5)", -3),
    # Quantities
    ("parseQuantity('1Ki')", 1024),
    ("parseQuantity('500m')", 0.5),
    ("parseQuantity(2)", 2),
    ("formatQuantity(0.5)", "500m"),
    ("formatQuantity(2147483648, 'Gi')", "2Gi"),
    ("formatQuantity(1, 'Gi')", "1Gi"),
    ("formatQuantity(1500, 'm')", "1500000m"),
    ("sumQuantity('500m', '1')", "1500m"),
    ("sumQuantity(['1Gi', '512Mi'])", "1536Mi"),
    ("sumQuantity('1Gi', '1G')", "2073741824"),
    ("sumQuantity('-1', '500m')", "-500m"),
    ("compareQuantity('1Gi', '1G')", 1),
    ("compareQuantity('1000m', 1)", 0),
    ("isQuantity('2Gi')", True),
    ("isQuantity('2 GB')", False),
    ("isQuantity([])", False),
    # Lists and mappings
    ("listHas(['a'], 'a')", True),
    ("listHas([1], true)", False),
    ("listGet([1, 2], -1)", 2),
    ("listGet([1, 2], 5, 'x')", "x"),
    ("listLen(spec.none)", 0),
    ("first([])", None),
    ("last([1, 2])", 2),
    ("sort(['b', 'a'])", ["a", "b"]),
    ("reverse([1, 2])", [2, 1]),
    ("unique(['b', 'a', 'b', 1, true])", ["b", "a", 1, True]),
    ("pluck([{'n': 1}, {}, 5, {'n': 2}], 'n')", [1, 2]),
    ("flatten([[1, 2], 3, [[4]]])", [1, 2, 3, [4]]),
    ("mapGet({'a.b': 1}, 'a.b')", 1),
    ("mapGet({}, 'a', 2)", 2),
    ("mapKeys({'b': 1, 'a': 2})", ["a", "b"]),
    ("mapValues({'b': 1, 'a': 2})", [2, 1]),
    ("mapItems({'b': 1, 'a': 2})", [["a", 2], ["b", 1]]),
    ("mapPick({'a': 1, 'b': 2}, 'a', 'z')", {"a": 1}),
    ("mapOmit({'a': 1, 'b': 2}, 'a')", {"b": 2}),
    ("mapMerge({'a': 1, 'b': 2}, {'b': 3})", {"a": 1, "b": 3}),
    # Encodings, hashes, names
    ("toBase64('pass')", "cGFzcw=="),
    ("fromBase64('cGFzcw==')", "pass"),
    ("toJSON({'b': [1, null], 'a': 'ä'})", '{"a":"ä","b":[1,null]}'),
    ("fromJSON('{\"a\": [1, 2.5]}')", {"a": [1, 2.5]}),
    ("sha256sum('')", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("sha512sum('a') | len", 128),
    ("shortHash('')", "e3b0c442"),
    ('slugify("Ann\'s  Blog!")', "ann-s-blog"),
    ("truncateName('short')", "short"),
    ("truncateName('a-rather-long-name', 16)", "a-rathe-87d02c79"),
    ("isDNS1123Label('web-1')", True),
    ("isDNS1123Label('web.1')", False),
    ("isDNS1123Subdomain('web.1')", True),
    # Versions
    ("semverMajor('v1.31.4')", 1),
    ("semverMinor('1.31')", 31),
    ("semverPatch('1.31')", 0),
    ("semverValid('latest')", False),
    ("semverCompare('1.0.0-rc.1', '1.0.0')", -1),
    ("semverCompare('1.10', '1.9')", 1),
    ("semverBump('v1.2.3-rc.1', 'minor')", "v1.3.0"),
    ("semverBump('1.2.3', 'patch')", "1.2.4"),
    ("semverConstraint('8.6.1', '>=8.5 <9')", True),
    ("semverConstraint('2.0.0', '^1.2')", False),
    # Network
    ("cidrContains('10.0.0.0/8', '10.1.2.3')", True),
    ("cidrContains('fd00::/8', '10.1.2.3')", False),
    ("cidrValid('10.0.0.0/33')", False),
    ("cidrValid('::/0')", True),
    ("cidrValid('10.0.0.1')", False),
    ("ipValid('::1')", True),
    ("ipValid('300.1.1.1')", False),
    ("ipIsPrivate('169.254.169.254')", True),
    ("ipIsPrivate('8.8.8.8')", False),
    # Time: 2026-11-22 is a Sunday.
    ("now()", "2026-11-22T23:30:00Z"),
    ("timeAgo('2026-11-20T00:00:00Z')", "2d"),
    ("timeAgo('2027-01-01T00:00:00Z')", "0s"),
    ("timeSince('2026-11-22T22:29:50Z')", "1h10s"),
    ("timeUntil('2026-11-24T00:00:00Z')", "1d30m"),
    ("timeUntil('2020-01-01T00:00:00Z')", "0s"),
    ("timeFormat('2026-01-31T08:00:00+02:00', '%Y-%m-%d %H:%M')", "2026-01-31 06:00"),
    ("isExpired('2026-11-22T23:30:00Z')", True),
    ("isExpired('2026-11-22T23:00:00Z', '31m')", False),
    ("durationSeconds('1h30m')", 5400),
    ("durationSeconds('500ms')", 0.5),
    ("durationSeconds('1mo')", 2592000),
    ("durationAdd('2026-01-31T08:00:00Z', '1d')", "2026-02-01T08:00:00Z"),
    ("durationValid('5 minutes')", False),
    ("durationValid('0')", True),
    ("weekday()", "Sunday"),
    ("weekday('2026-11-23T00:00:00Z')", "Monday"),
    ("timeInWindow('22:00', '06:00')", True),
    ("timeInWindow('06:00', '22:00')", False),
    # Cron
    ("cronValid('0 3 * * 1-5')", True),
    ("cronValid('0 0 30 2 *')", False),
    ("cronValid('* * * *')", False),
    ("cronValid('0 0 L * *')", False),
    ("cronValid('0 0 * * 5#2')", False),
    ("cronNormalize(' @weekly ')", "0 0 * * 0"),
    ("cronNormalize('0 3 ? jan-mar MON-FRI')", "0 3 * 1-3 1-5"),
    ("cronNormalize('0 3 * * 7')", "0 3 * * 0"),
    ("cronToMap('5 3 * * 1')", {"minute": "5", "hour": "3", "dayOfMonth": "*", "month": "*", "dayOfWeek": "1"}),
    ("cronFromMap({'hour': 3, 'minute': 0})", "0 3 * * *"),
    ("cronFromAny(['0', 3, '*', '*', 'SUN'])", "0 3 * * 0"),
    ("cronFromAny({'minute': '*/5'})", "*/5 * * * *"),
    ("cronFromAny('@hourly')", "0 * * * *"),
    ("cronField('0 3 * * 1-5', 'dayOfWeek')", "1-5"),
    ("cronMinute('5 3 1 2 *')", "5"),
    ("cronHour('5 3 1 2 *')", "3"),
    ("cronDom('5 3 1 2 *')", "1"),
    ("cronMonth('5 3 1 2 *')", "2"),
    ("cronDow('5 3 1 2 *')", "*"),
    ("cronExpr(0, 3, '*', '*', '1-5')", "0 3 * * 1-5"),
    ("cronDescribe('0 3 * * 1-5')", "minute 0, hour 3, day of week 1-5"),
    ("cronDescribe('* * * * *')", "every minute"),
    ("cronNext('30 23 * * *')", "2026-11-23T23:30:00Z"),
    ("cronNext('0 0 1 * *', 2)", ["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
    ("cronPrevious('30 23 * * *')", "2026-11-22T23:30:00Z"),
    ("cronActive('0 23 * * *', '1h')", True),
    ("cronActive('0 23 * * *')", False),
    # Objects
    ("meta(deployment).name", "web"),
    ("name(deployment)", "web"),
    ("namespace(deployment)", "shop"),
    ("kind(deployment)", "Deployment"),
    ("labels(deployment)", {"a.b/c": "d"}),
    ("annotations(deployment)", {"e": "f"}),
    ("spec(deployment).replicas", 3),
    ("status(nothing)", {}),
    ("phase(deployment)", "Running"),
    ("getLabel(deployment, 'a.b/c')", "d"),
    ("getLabel(deployment, 'x', 'none')", "none"),
    ("getAnnotation(deployment, 'e')", "f"),
    ("resourceName(deployment, 'config')", "web-config"),
    ("resourceExists(deployment)", True),
    ("resourceExists(seen)", False),
    ("resourceExists(nothing)", False),
    ("isTerminating(deployment)", False),
    ("isTerminating({'metadata': {'deletionTimestamp': '2026-01-01T00:00:00Z'}})", True),
    ("generation(deployment)", 4),
    ("observedGeneration(nothing)", 0),
    ("isSynced(deployment)", True),
    ("isSynced(nothing)", False),
    ("hasCondition(deployment, 'Available')", True),
    ("hasCondition(deployment, 'Available', 'False')", False),
    ("conditionStatus(deployment, 'Progressing')", ""),
    ("conditionReason(deployment, 'Available')", "Enough"),
    ("conditionMessage(deployment, 'Available')", "It is"),
    # Workloads
    ("desiredReplicas(deployment)", 3),
    ("desiredReplicas({'spec': {}})", 1),
    ("desiredReplicas(nothing)", 0),
    ("readyReplicas(deployment)", 2),
    ("availableReplicas(deployment)", 3),
    ("updatedReplicas(deployment)", 3),
    ("replicasReady(deployment)", True),
    ("allReplicasReady(deployment)", False),
    ("allReplicasReady(nothing)", False),
    ("rolloutComplete(deployment)", True),
    ("rolloutComplete(nothing)", False),
    ("serviceClusterIP(service)", "10.0.0.1"),
    ("serviceClusterIP({'spec': {'clusterIP': 'None'}})", ""),
    ("serviceNodePort(service)", 30080),
    ("serviceLoadBalancerIP(service)", "1.2.3.4"),
    ("serviceLoadBalancerHost(service)", "lb.example"),
    ("endpointsReady(slice)", True),
    ("containerImage(deployment)", "nginx:1"),
    ("containerImage(deployment, 'side')", "envoy:2"),
    ("containerEnv(deployment, 'A')", "1"),
    ("containerEnv(deployment, 'B')", ""),
    ("containerPort(deployment)", 80),
    ("containerPortByName(deployment, 'admin')", 9001),
    ("containerPorts(deployment, 'side')", [9000, 9001]),
    ("containerCount(deployment)", 2),
    ("jobSucceeded(job)", True),
    ("jobFailed(job)", False),
    ("jobActive(job)", True),
    # Random values
    ("randomAlphanumeric(12) | len", 12),
    ("matches(randomHex(32), '^[0-9a-f]{32}$')", True),
    ("len(randomBase64(30))", 40),
]

REFUSALS = [
    ("require(spec.none, 'say x')", "say x (found absent)"),
    ("toInt('4.2')", "expected an integer, found '4.2'"),
    ("toFloat('nan')", "expected a number, found 'nan'"),
    ("toBool('maybe')", "expected true or false, found 'maybe'"),
    ("toString([])", "a list cannot become a string"),
    ("len(5)", "expected a string, a list or a mapping, found a number"),
    ("replace('a', '', 'b')", "expected a string to replace, found an empty one"),
    ("split('a', '')", "expected a separator, found an empty string"),
    ("matches('a', '(')", "missing closing )"),
    ("truncate('abc', 0, '…')", "expected a length of at least that of the ending, 1, found 0"),
    ("indent('a', 1000)", "expected 0 to 100 spaces"),
    ("repeat('a', 9999999)", "at most 1048576 characters"),
    ("div(1, 0)", "division by zero"),
    ("clamp(1, 3, 2)", "expected the lower limit first"),
    ("mul(1e200, 1e200)", "too large"),
    ("parseQuantity('2 GB')", "expected a quantity such as"),
    ("formatQuantity(1, 'GB')", "expected one of the suffixes"),
    ("sumQuantity(true)", "expected quantities"),
    ("sort([1, 'a'])", "expected only numbers or only strings"),
    ("fromBase64('!')", "expected base64 of UTF-8 text"),
    ("fromJSON('{')", "expected valid JSON (line 1, column 2)"),
    ("fromJSON('NaN')", "expected valid JSON"),
    ("fromJSON('[1e999]')", "expected valid JSON"),
    ("fromJSON('[9223372036854775808]')", "expected valid JSON"),
    (r"fromJSON('[\"\\ud800\"]')", "expected valid JSON"),
    ("shortHash('a', 3)", "expected a length of 4 to 64"),
    ("truncateName('a', 3)", "expected a length of 16 to 253"),
    ("semverMajor('latest')", "cannot read the version"),
    ("semverConstraint('1.0', 'x y')", "cannot read the version range"),
    ("semverBump('1.0', 'minr')", "expected major, minor or patch"),
    ("cidrContains('10.0.0.0', 'x')", "expected a network such as 10.0.0.0/8"),
    ("ipIsPrivate('x')", "expected an address"),
    ("timeSince('yesterday')", "expected a time such as 2026-01-31T08:00:00Z, found 'yesterday'"),
    ("timeFormat(now(), '%999999999Y')", "expected a layout"),
    ("durationSeconds('5 minutes')", "expected a duration such as"),
    ("durationSeconds('101y')", "at most a hundred years"),
    ("durationAdd('9999-12-31T00:00:00Z', '1y')", "out of range"),
    ("timeInWindow('6', '7')", "expected a time of day such as 22:00"),
    ("cronNormalize('0 0 30 2 *')", "expected a cron schedule of five fields"),
    ("cronFromMap({'hours': 3})", "unknown field hours (did you mean hour?)"),
    ("cronField('@daily', 'day')", "unknown field day"),
    ("cronFromAny(5)", "expected a string, a mapping or a list"),
    ("cronNext('@daily', 99)", "expected a count of 1 to 20"),
]


def call(text: str) -> Any:
    return reveal_sensitive(compile_expression(f"{{{{ {text} }}}}", where="x").render(SCOPE, environment=NOW))


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text for text, _ in VALUES])
def test_a_function_gives_a_value(text: str, value: Any) -> None:
    found = call(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("text", "problem"), REFUSALS, ids=[text for text, _ in REFUSALS])
def test_a_function_says_what_it_expected(text: str, problem: str) -> None:
    name = text.partition("(")[0]
    with pytest.raises(ExpressionError) as caught:
        call(text)
    assert f"{name}: " in str(caught.value)
    assert problem in str(caught.value)


def test_every_function_is_in_the_table_and_in_its_documentation() -> None:
    called = " ".join(text for text, _ in VALUES)
    assert [name for name in LIBRARY if f"{name}(" not in called] == []
    assert [name for name, function in LIBRARY.items() if not function.about] == []
    assert len(LIBRARY) == sum(len(group.functions) for group in GROUPS)


def test_the_page_about_functions_is_current() -> None:
    page = Path(__file__).parents[5] / "docs" / "box-functions.md"
    assert page.read_text() == build_functions_page(), (
        "python -m konverge_box._internal.expressions.functions.docs_page > docs/box-functions.md"
    )


def test_random_values_come_from_the_entropy_that_is_given() -> None:
    template = compile_expression("{{ randomAlphanumeric(20) }}", where="x")
    one, same, other = (
        template.render({}, environment=EvaluationEnvironment(entropy=SeededEntropy(seed))).reveal()
        for seed in (1, 1, 2)
    )
    assert one == same != other
    assert template.list_needs() == {"randomness"}
    with pytest.raises(ExpressionError, match="randomAlphanumeric needs randomness, which is not available here"):
        template.render({})
