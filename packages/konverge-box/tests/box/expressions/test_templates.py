"""Expressions: their values, the paths that they read, and their errors."""

from __future__ import annotations

import subprocess
import sys
from types import MappingProxyType
from typing import Any

import pytest

from konverge.errors import ConfigurationError, KonvergeError
from konverge_box.expressions import (
    OMIT,
    Absent,
    EvaluationLimits,
    ExpressionError,
    ExpressionSyntaxError,
    compile_expression,
    compile_structure,
    is_expression,
)

SCOPE: dict[str, Any] = {
    "spec": {
        "replicas": 3,
        "name": "web",
        "version": "1.10",
        "nothing": None,
        "blank": "",
        "off": False,
        "ratio": 0.5,
        "hosts": ["a.example", "b.example"],
        "users": [{"name": "ann", "admin": True}, {"name": "bob", "admin": False}],
        "env": {"B": "2", "A": "1"},
    },
    "metadata": {"name": "shop", "labels": {"app.kubernetes.io/name": "web"}},
    "cross": {"db": {"status": {"ready": "true"}}},
}


def render_text(text: str, scope: dict[str, Any] | None = None) -> Any:
    return compile_expression(text, where="box.yaml").render(SCOPE if scope is None else scope)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("{{ spec.replicas }}", 3, id="a number stays one"),
        pytest.param("{{ spec.version }}", "1.10", id="text that looks like a number stays text"),
        pytest.param("{{ spec.off }}", False, id="a boolean"),
        pytest.param("{{ spec.nothing }}", None, id="null"),
        pytest.param("{{ spec.blank }}", "", id="empty text"),
        pytest.param("{{ spec.hosts }}", ["a.example", "b.example"], id="a list"),
        pytest.param("\n  {{ spec.replicas }}\n", 3, id="blanks around one expression"),
        pytest.param("{{ .cross.db.status.ready }}", "true", id="a dot in front"),
        pytest.param("{{ [.spec.name, -.spec.replicas, not .spec.off] }}", ["web", -3, True], id="dots inside"),
        pytest.param("{{ .spec.name if .spec.replicas > 2 else .spec.none }}", "web", id="dots behind words"),
        pytest.param("{{ metadata.labels['app.kubernetes.io/name'] }}", "web", id="a key with dots"),
        pytest.param("{{ spec.users[1].name }}", "bob", id="an item"),
        pytest.param("{{ spec.users[-1].name }}", "bob", id="the last item"),
        pytest.param("{{ spec[spec.name | replace('web', 'name')] }}", "web", id="a key that is computed"),
        pytest.param("{{ spec.hosts[1:] }}", ["b.example"], id="a slice"),
        pytest.param("{{ spec.name }}-{{ spec.replicas }}", "web-3", id="several make text"),
        pytest.param("{{ spec.off }}!", "false!", id="a boolean in text"),
        pytest.param("{{ spec.ratio }} {{ 2.0 }}", "0.5 2", id="numbers in text"),
        pytest.param("{{ spec.replicas + 1 }}", 4, id="plus"),
        pytest.param("{{ 6 / 2 }}", 3, id="an integer quotient"),
        pytest.param("{{ 7 / 2 }}", 3.5, id="a quotient"),
        pytest.param("{{ 7 // 2 - 7 % 2 }}", 2, id="floor and rest"),
        pytest.param("{{ spec.hosts + ['c'] }}", ["a.example", "b.example", "c"], id="lists added"),
        pytest.param("{{ 'n: ' ~ spec.replicas }}", "n: 3", id="joined"),
        pytest.param("{{ 'a.example' in spec.hosts }}", True, id="in a list"),
        pytest.param("{{ 'A' in spec.env and 'eb' in spec.name }}", True, id="in a mapping and in text"),
        pytest.param("{{ 1 < spec.replicas <= 3 }}", True, id="chained comparison"),
        pytest.param("{{ spec.off == 0 }}", False, id="a boolean is no number"),
        pytest.param("{{ spec.off or spec.name }}", "web", id="or gives the value"),
        pytest.param("{{ spec.replicas and spec.name }}", "web", id="and gives the value"),
        pytest.param("{{ spec.none | default(2) }}", 2, id="default of what is absent"),
        pytest.param("{{ spec.nothing | default(2) }}", 2, id="default of null"),
        pytest.param("{{ spec.blank | default(2) }}", "", id="empty text is a value"),
        pytest.param("{{ spec.off | default(true) }}", False, id="false is a value"),
        pytest.param("{{ spec.a.b.c | default('x') }}", "x", id="default of an absent parent"),
        pytest.param("{{ default(2, spec.none) }}", 2, id="the fallback comes first"),
        pytest.param("{{ get(spec, 'a.b.c') }}", None, id="get of an absent parent"),
        pytest.param("{{ spec.a.b is defined }}", False, id="is defined"),
        pytest.param("{{ spec.nothing is defined and spec.nothing is none }}", True, id="null is there"),
        pytest.param("{{ spec.blank is empty }}", True, id="a function as a test"),
        pytest.param("{{ {'a': spec.name, 'b': omit, 'c': [omit, 1]} }}", {"a": "web", "c": [1]}, id="omit inside"),
        pytest.param("{{ spec.none | default(omit) }}", OMIT, id="omit"),
        pytest.param("{{ null }}", None, id="the word null"),
        pytest.param("{% for u in spec.users if u.admin %}{{ u.name }}{% endfor %}", "ann", id="a loop with a test"),
        pytest.param(
            "{% for k, v in mapItems(spec.env) %}{{ k }}={{ v }};{% endfor %}", "A=1;B=2;", id="a loop over two"
        ),
        pytest.param("{% for k in spec.env %}{{ k }}{% endfor %}", "AB", id="a loop over a mapping, in order"),
        pytest.param("{% for h in [] %}x{% else %}none{% endfor %}", "none", id="a loop over nothing"),
        pytest.param(
            "{% for h in spec.hosts %}{{ loop.index }}{{ loop.last }} {% endfor %}", "1false 2true ", id="loop"
        ),
        pytest.param("{% if spec.off %}a{% elif spec.name %}b{% else %}c{% endif %}", "b", id="if"),
        pytest.param("a:\n{% if true %}\n  b\n{% endif %}\nc\n", "a:\n  b\nc\n", id="lines of signs alone leave none"),
        pytest.param("{{# a note #}}{{ spec.name }}", "web", id="a comment"),
        pytest.param("echo ${#list[@]} {{ spec.name }}", "echo ${#list[@]} web", id="a shell's sign is no comment"),
        pytest.param("{% raw %}{{ x }}{% endraw %}", "{{ x }}", id="raw"),
        pytest.param("plain", "plain", id="no expression"),
        pytest.param("a\r\nb{{ spec.name }}", "a\nbweb", id="lines end with a newline"),
    ],
)
def test_an_expression_comes_to_a_value(text: str, value: Any) -> None:
    found = render_text(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "{{ spec.replica }}",
            "box.yaml, line 1, column 4: spec.replica is absent (did you mean replicas?); write spec.replica |",
            id="absent",
        ),
        pytest.param(
            "x\n  {{ spec.resources.requests.cpu }}",
            "line 2, column 6: spec.resources.requests.cpu: spec.resources is absent (known: ",
            id="absent parent",
        ),
        pytest.param("{{ spce.name }}", "spce is absent (did you mean spec?)", id="an unknown name"),
        pytest.param("{{ spec.name.first }}", "spec.name.first is absent, because its parent is a string", id="text"),
        pytest.param("{{ spec.hosts[7] }}", "spec.hosts[7] is absent, because its parent is a list", id="no item"),
        pytest.param("{% if spec.none %}{% endif %}", "spec.none is absent", id="a question to what is absent"),
        pytest.param("a{{ spec.nothing }}", "null cannot become a string; use default(…)", id="null in text"),
        pytest.param("a{{ spec.hosts }}", "a list cannot become a string; use toJSON", id="a list in text"),
        pytest.param("a{{ omit }}", "omit can only be the result", id="omit in text"),
        pytest.param("{{ spec.name + 1 }}", "expected two numbers for +, found a string and a number", id="plus"),
        pytest.param("{{ true + 1 }}", "expected two numbers for +, found a boolean and a number", id="boolean"),
        pytest.param(
            "{{ spec.name < 1 }}", "two numbers or two strings to compare, found a string and a number", id="order"
        ),
        pytest.param("{{ 1 // 0 }}", "// by zero", id="zero"),
        pytest.param("{{ 9223372036854775807 + 1 }}", "expected a number of 64 bits", id="large"),
        pytest.param("{{ 1e300 * 1e300 }}", "expected a finite number", id="infinite"),
        pytest.param(
            "{{ spec.replicas | toLower }}", "toLower: expected a string for text, found a number", id="argument"
        ),
        pytest.param("{{ spec.name | toInt }}", "column 16: toInt: expected an integer, found 'web'", id="value"),
        pytest.param("{% for x in 5 %}{% endfor %}", "expected a list or a mapping to loop over", id="loop"),
        pytest.param("{{ now() }}", "now needs time, which is not available here", id="no time"),
        pytest.param("{{ {1: 2} }}", "expected a string for a key, found a number", id="a key"),
    ],
)
def test_data_that_does_not_fit_is_an_error_with_its_place(text: str, message: str) -> None:
    template = compile_expression(text, where="box.yaml")
    with pytest.raises(ExpressionError) as caught:
        template.render(SCOPE)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        pytest.param("{{ a b }}", 1, 6, "expected token 'end of print statement', found 'b'", id="two words"),
        pytest.param("a\nb {{ foo( }}", 2, 11, "expected ')'", id="a bracket"),
        pytest.param("{{ a", 1, 4, "end of print statement", id="no end"),
        pytest.param(
            "{{ spec.x | toLowr }}", 1, 13, "unknown function toLowr (did you mean toLower?)", id="no function"
        ),
        pytest.param("{{ toLower() }}", 1, 11, "toLower(text): expected 1 argument, found 0", id="too few"),
        pytest.param("{{ now(1) }}", 1, 7, "now(): expected 0 arguments, found 1", id="too many"),
        pytest.param("{{ truncate(a, length=2) }}", 1, 12, "expected positional arguments", id="keywords"),
        pytest.param("{{ x is strang }}", 1, 6, "unknown function strang", id="no test"),
        pytest.param("{{ spec.name.upper() }}", 1, 19, "only the functions of the library can be called", id="method"),
        pytest.param("{{ 'a'.format(1) }}", 1, 14, "only the functions of the library can be called", id="format"),
        pytest.param("{% set a = 1 %}", 1, 4, "found set", id="set"),
        pytest.param("{% macro a() %}{% endmacro %}", 1, 4, "found macro", id="macro"),
        pytest.param("{% include 'a' %}", 1, 4, "found include", id="include"),
        pytest.param("{% import 'a' as b %}", 1, 4, "found import", id="import"),
        pytest.param("{% extends 'a' %}", 1, 4, "found extends", id="extends"),
        pytest.param("{% block a %}{% endblock %}", 1, 4, "found block", id="block"),
        pytest.param("{% filter toLower %}{% endfilter %}", 1, 4, "found filter", id="filter block"),
        pytest.param(
            "{% for a in b recursive %}{% endfor %}", 1, 4, "recursive loops are not supported", id="recursion"
        ),
        pytest.param("{{ 2 ** 99 }}", 1, 4, "found **", id="power"),
        pytest.param("{{ a[::2] }}", 1, 5, "expected a slice [from:to]", id="a step"),
        pytest.param("{{ a if b }}", 1, 4, "expected else", id="no else"),
        pytest.param("{{ 99999999999999999999 }}", 1, 4, "64 bits", id="a long number"),
        pytest.param("{{ ? }}", 1, 4, "unexpected char '?'", id="a sign"),
        pytest.param("{{ x | default }}", 1, 8, "default(fallback, value): expected 2 arguments", id="no fallback"),
    ],
)
def test_a_text_that_is_no_expression_is_refused_with_line_and_column(
    text: str, line: int, column: int, problem: str
) -> None:
    with pytest.raises(ExpressionSyntaxError) as caught:
        compile_expression(text, where="spec.crds.web.name")
    error = caught.value
    assert (error.line, error.column, error.where) == (line, column, "spec.crds.web.name")
    assert problem in error.problem
    assert isinstance(error, ConfigurationError)


def test_a_template_tells_which_paths_it_reads() -> None:
    text = """{{ .cross.db.status | default(spec['a-b'].c) }}
    {% for i in spec.items %}{{ i.x }} {{ loop.index }}{% endfor %}
    {{ labels[metadata.name].z }} {{ omit }} {{ now() }}"""
    template = compile_expression(text, where="x")
    assert template.list_read_paths() == {
        ("cross", "db", "status"),
        ("spec", "a-b", "c"),
        ("spec", "items"),
        ("labels",),
        ("metadata", "name"),
    }
    assert template.list_needs() == {"time"}


def test_only_braces_make_an_expression() -> None:
    assert [is_expression(text) for text in ("{{ a }}", "{% if a %}{% endif %}", "a { b } ${#c}")] == [
        True,
        True,
        False,
    ]


def test_absence_can_be_asked_for() -> None:
    template = compile_expression("{{ spec.a.b }}", where="x")
    found = template.find(SCOPE)
    assert isinstance(found, Absent)
    assert (found.path, found.missing) == ("spec.a.b", "spec.a")
    assert compile_expression("{{ spec.nothing }}", where="x").find(SCOPE) is None


def test_a_result_shares_nothing_with_the_scope() -> None:
    found = render_text("{{ spec.users }}")
    found[0]["name"] = "eve"
    assert SCOPE["spec"]["users"][0]["name"] == "ann"


def test_a_scope_that_cannot_be_changed_will_do() -> None:
    scope = {"spec": MappingProxyType({"a": MappingProxyType({"b": (1, 2)})})}
    assert compile_expression("{{ spec.a }}", where="x").render(MappingProxyType(scope)) == {"b": [1, 2]}
    assert compile_expression("{{ spec.a | toJSON }}", where="x").render(scope) == '{"b":[1,2]}'


def test_names_of_functions_are_names_of_fields_too() -> None:
    assert render_text("{{ name | toUpper }}", {"name": "n"}) == "N"
    assert render_text("{% for name in names %}{{ name }}{% endfor %}", {"names": ["a"]}) == "a"


def test_a_structure_is_filled_and_omit_drops_the_field() -> None:
    declared = {
        "replicas": "{{ spec.replicas }}",
        "{{ spec.name }}-key": ["{{ spec.name }}", "{{ spec.none | default(omit) }}", 5],
        "gone": "{{ omit }}",
        "nested": {"gone": "{{ omit }}", "null": None},
    }
    structure = compile_structure(declared, where="x")
    assert structure.render(SCOPE) == {"replicas": 3, "web-key": ["web", 5], "nested": {"null": None}}
    assert structure.list_read_paths() == {("spec", "replicas"), ("spec", "name"), ("spec", "none")}


def test_a_structure_says_where_its_mistake_is() -> None:
    with pytest.raises(ExpressionSyntaxError, match=r"spec\.env\[1\]\.value, line 1, column 4"):
        compile_structure({"env": [{}, {"value": "{{ 2 ** 3 }}"}]}, where="spec")
    with pytest.raises(ExpressionError, match="expected a string for the key {{ a }}, found a number"):
        compile_structure({"{{ a }}": 1}, where="spec").render({"a": 5})


@pytest.mark.parametrize(
    ("text", "limits", "problem"),
    [
        pytest.param("{% for a in xs %}{% endfor %}", EvaluationLimits(steps=50), "more than 50 steps", id="turns"),
        pytest.param("{{ xs }}", EvaluationLimits(size=50), "at most 50 characters and items", id="items"),
        pytest.param("{{ 'abc' ~ t }}", EvaluationLimits(size=50), "at most 50 characters and items", id="letters"),
        pytest.param("{{ [[[1]]] }}", EvaluationLimits(depth=2), "deeper than 2 levels", id="depth"),
        pytest.param(
            "{{ [[[1]]] | toJSON }}", EvaluationLimits(depth=2), "deeper than 2 levels", id="depth of an argument"
        ),
    ],
)
def test_limits_end_an_evaluation(text: str, limits: EvaluationLimits, problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem):
        compile_expression(text, where="x").render({"xs": list(range(100)), "t": "x" * 50}, limits=limits)


def test_a_long_text_is_refused_before_it_is_read() -> None:
    with pytest.raises(
        ExpressionSyntaxError, match="at most 65536 characters in a string with expressions, found 1000003"
    ):
        compile_expression("{{ a" + " " * 999_997 + "}}", where="x")


def test_a_path_to_something_of_python_finds_nothing() -> None:
    for text in ("{{ f }}", "{{ [f] }}", "{{ f | toJSON }}", "{{ {'a': f} }}", "{{ f.__globals__ }}", "{{ f ~ '' }}"):
        with pytest.raises(ExpressionError):
            render_text(text, {"f": render_text})


def test_expressions_without_jinja_say_what_to_install() -> None:
    script = """
import sys
sys.modules["jinja2"] = None
from konverge_box.expressions import compile_expression
compile_expression("{{ a }}", where="x")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (
        "ConfigurationError: expressions need Jinja2, which is not installed: pip install 'konverge[box]'"
        in done.stderr
    )


def test_importing_expressions_loads_no_template_engine() -> None:
    script = (
        "import sys, konverge_box.expressions; print(sorted({'jinja2', 'cronsim', 'nodesemver'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_both_errors_are_konverge_errors() -> None:
    assert issubclass(ExpressionError, KonvergeError)
    assert issubclass(ExpressionSyntaxError, KonvergeError)
