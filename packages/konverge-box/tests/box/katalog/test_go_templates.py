"""Go templates as expressions: the same value for the same object, or the reason why there is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_box._internal.katalog.expression_translator import TemplateUse, translate_template
from konverge_box._internal.katalog.go_template import TemplateProblemError
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.operands import strip_brackets
from konverge_box.expressions import OMIT, compile_expression, reveal_sensitive

SCHEMA = {
    "required": ["image"],
    "properties": {
        "image": {"type": "string"},
        "replicas": {"type": "integer"},
        "hosts": {"items": {"type": "string"}, "type": "array"},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
KNOWN = KnownFields(
    schema=SCHEMA,
    renamed={("external", "my-call"): "myCall"},
    notes={"team": '{{ default "none" .spec.team }}', "both": "{{ .spec.a }}{{ .spec.b }}", "loop": "{{ loop }}"},
)
SCOPE: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "App",
    "metadata": {
        "name": "web",
        "namespace": "prod",
        "labels": {"a/b": "c"},
        "creationTimestamp": "2026-01-31T08:00:00Z",
    },
    "spec": {
        "image": "nginx",
        "replicas": 3,
        "hosts": ["a", "b"],
        "sizes": {"s": 1, "l": 2},
        "on": True,
        "off": False,
        "zero": 0,
        "deep": {"x": "y"},
        "schedule": "*/5 2 * * 1",
        "mem": "1Gi",
    },
    "external": {"myCall": {"status": "200"}},
}

# Template, the use of its value, the value.
SAME: list[tuple[str, TemplateUse, Any]] = [
    ("{{ .spec.image }}", TemplateUse.TEXT, "nginx"),
    ("  {{ .spec.image }} ", TemplateUse.TEXT, "nginx"),
    ("{{ .spec.replicas }}", TemplateUse.TEXT, "3"),
    ("{{ .spec.replicas }}", TemplateUse.NUMBER, 3),
    ("{{ .spec.absent }}", TemplateUse.TEXT, ""),
    ("{{ .spec.absent }}", TemplateUse.VALUE, OMIT),
    ("{{ .spec.absent }}", TemplateUse.PLAIN, ""),
    ("{{ .spec.absent }}", TemplateUse.NUMBER, OMIT),
    ("x-{{ .spec.absent.below }}-{{ .spec.on }}", TemplateUse.TEXT, "x--true"),
    ("{{ default 2 .spec.replicas }}", TemplateUse.NUMBER, 3),
    ("{{ default 2 .spec.absent }}", TemplateUse.NUMBER, 2),
    ("{{ default .spec.absent 2 }}", TemplateUse.NUMBER, 2),
    ('{{ .spec.absent | default "x" }}', TemplateUse.TEXT, "x"),
    ('{{ trimPrefix .spec.image "ng" }}', TemplateUse.TEXT, "inx"),
    ('{{ if eq .spec.image "nginx" }}3{{ else }}1{{ end }}', TemplateUse.NUMBER, 3),
    ('{{ if eq .spec.image "nginx" }}3{{ else }}1{{ end }}', TemplateUse.TEXT, "3"),
    ('{{ if eq .spec.absent "x" }}a{{ else if .spec.on }}b{{ else }}c{{ end }}', TemplateUse.TEXT, "b"),
    ("{{ if .spec.zero }}a{{ end }}", TemplateUse.TEXT, ""),
    ("{{ if not .spec.absent }}a{{ end }}b", TemplateUse.TEXT, "ab"),
    ("{{ if and .spec.on (not .spec.off) }}yes{{ else }}no{{ end }}", TemplateUse.TEXT, "yes"),
    ("{{ or .spec.absent .spec.image }}", TemplateUse.TEXT, "nginx"),
    ("{{ range .spec.hosts }}{{ . }},{{ end }}", TemplateUse.TEXT, "a,b,"),
    ("{{ range $i, $h := .spec.hosts }}{{ $i }}{{ $h }}{{ end }}", TemplateUse.TEXT, "0a1b"),
    ("{{ range $k, $v := .spec.sizes }}{{ $k }}={{ $v }};{{ end }}", TemplateUse.TEXT, "l=2;s=1;"),
    ("{{ range .spec.deep }}{{ . }}{{ end }}", TemplateUse.TEXT, "y"),
    ("{{ range .spec.absent }}{{ . }}{{ else }}none{{ end }}", TemplateUse.TEXT, "none"),
    ("{{ range .spec.hosts }}{{ $.metadata.name }}.{{ . }} {{ end }}x", TemplateUse.TEXT, "web.a web.b x"),
    ("{{ with .spec.deep }}{{ .x }}{{ end }}", TemplateUse.TEXT, "y"),
    ("{{ with .spec.absent }}{{ .x }}{{ else }}z{{ end }}", TemplateUse.TEXT, "z"),
    ("{{ $n := .metadata.name }}{{ $n }}-{{ $n }}", TemplateUse.TEXT, "web-web"),
    ("a\n{{- /* nothing */ -}}\n b", TemplateUse.TEXT, "ab"),
    ("a\n{{ if .spec.on }}\nb\n{{ end }}\nc", TemplateUse.TEXT, "a\n\nb\n\nc"),
    ('{{ printf "%s-%d" .spec.image .spec.replicas }}', TemplateUse.TEXT, "nginx-3"),
    ('{{ index .metadata.labels "a/b" }}', TemplateUse.TEXT, "c"),
    ("{{ index .spec.hosts 1 }}", TemplateUse.TEXT, "b"),
    ('{{ (index .external "my-call").status }}', TemplateUse.TEXT, "200"),
    ("{{ team }}-x", TemplateUse.TEXT, "none-x"),
    ('{{ ternary .spec.absent "a" "b" }}', TemplateUse.TEXT, "b"),
    ('{{ eqTernary .spec.replicas "3" "a" "b" }}', TemplateUse.TEXT, "a"),
    ('{{ getStringOr .spec.replicas "x" }}', TemplateUse.TEXT, "x"),
    ("{{ getIntOr .spec.absent 7 }}", TemplateUse.NUMBER, 7),
    ("{{ div 7 2 }}", TemplateUse.VALUE, 3.5),
    ("{{ div 8 2 }}", TemplateUse.VALUE, 4),
    ("{{ typeOf .spec.hosts }}", TemplateUse.TEXT, "slice"),
    ("{{ typeOf .spec.absent }}", TemplateUse.TEXT, "null"),
    ("{{ empty .spec.zero }}", TemplateUse.TEXT, "true"),
    ("{{ sha256sum .spec.image }}", TemplateUse.TEXT, "5be1ecc7"),
    ("{{ truncateName .spec.image 3 }}", TemplateUse.TEXT, "ngi"),
    ("{{ cronField .spec.schedule 1 }}", TemplateUse.TEXT, "2"),
    ('{{ timeFormat .metadata.creationTimestamp "2006-01-02" }}', TemplateUse.TEXT, "2026-01-31"),
    ('{{ getLabel . "a/b" }}', TemplateUse.TEXT, "c"),
    ('{{ resourceMemory . | default "128Mi" }}', TemplateUse.TEXT, "128Mi"),
    ("{{ true }}", TemplateUse.BOOLEAN, True),
    ("{% raw", TemplateUse.TEXT, "{% raw"),
    ("{% {{ .spec.image }}", TemplateUse.TEXT, "{% nginx"),
    ("{ {{ .spec.image }}}", TemplateUse.TEXT, "{ nginx}"),
    ("a{{ .spec.image }}{{ `{` }}{{ .spec.image }}", TemplateUse.TEXT, "anginx{nginx"),
    ('{{ "q\\"u\\\\o\\n" }}', TemplateUse.TEXT, 'q"u\\o\n'),
]


@pytest.mark.parametrize(("template", "use", "value"), SAME)
def test_a_template_gives_the_value_that_it_gives_there(template: str, use: TemplateUse, value: Any) -> None:
    expression = translate_template(template, use, KNOWN)

    assert reveal_sensitive(compile_expression(expression, where="test").render(SCOPE)) == value


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ .request.x }}", "does not check rules at admission"),
        ("{{ .ork.namespace }}", "properties of its process"),
        ("{{ .nothing.x }}", "unknown name 'nothing'"),
        ("{{ nothing .spec.a }}", "unknown function"),
        ("{{ default .spec.a .spec.b }}", "expected one literal, found two or none"),
        ("{{ timeSince .spec.a }}", "it returns seconds in a Katalog"),
        ("{{ range $k, $v := .spec.unknown }}{{ $k }}{{ end }}", "a value of unknown type"),
        ('{{ template "x" . }}', "template }} has no counterpart"),
        ("{{ $a := 1 }}{{ $a = 2 }}", "second assignment"),
        ("{{ $a := randomHex 3 }}{{ $a }}", "random"),
        ('{{ printf "%05d" .spec.a }}', "printf with %0"),
        ("{{ if .spec.a }}", "without its end"),
        ("{{ end }}", "end without an if"),
        ("{{ .spec.a", "expected a word or }}"),
        ("{{ (.spec.a }}", "an unclosed bracket"),
        ("{{ .external.my-call.status }}", "expected a word or }}"),
        ("{{ both }}", "not a single expression"),
        ("{{ loop }}", "notes in one expression"),
        ("{{ toUpper . }}", "the whole object"),
        ("{{ asList .spec.unknown }}", "may not be a list"),
        ("{{ 99999999999999999999 }}", "64 bits"),
        ("{{ .children.gizmo.status }}", "no counterpart"),
        ("{{ toUpper }}", "expected 1 arguments, found 0"),
        ("{{ 'x' }}", "expected a word"),
        ("{{{ .spec.image }}}", "expected a word"),
        ('{{ hasPrefix.spec.image "ng" }}', "only a function can have arguments"),
    ],
)
def test_what_has_no_counterpart_says_why(template: str, why: str) -> None:
    with pytest.raises(TemplateProblemError) as caught:
        translate_template(template, TemplateUse.TEXT, KNOWN)

    assert why in caught.value.why


@pytest.mark.parametrize(
    "template",
    [
        "{{ " + "(" * 10_000 + " }}",
        "{{ if .a }}" * 1_000,
        "{{ if .a }}{{ else if .b }}" + "{{ else if .b }}" * 1_000 + "{{ end }}",
        "{{ .a | " + "toUpper | " * 5_000 + "toUpper }}",
        "{{ " + "a " * 20_000 + "}}",
        "x" * 70_000 + "{{ .a }}",
        "".join(f'{{{{ $x{n} := printf "%s%s" $x{n - 1} $x{n - 1} }}}}' for n in range(1, 40)).replace(
            "$x0", ".spec.image"
        )
        + "{{ $x39 }}",
    ],
)
def test_templates_that_would_take_for_ever_are_refused(template: str) -> None:
    with pytest.raises(TemplateProblemError):
        translate_template(template, TemplateUse.TEXT, KNOWN)


PIECES = st.sampled_from(
    ["{{", "}}", "{{-", " -}}", "{%", "{#", ".spec.image", ".spec", "$x", ":=", "if", "else", "end", "range", "with",
     "eq", "default", "index", "printf", '"a"', "'", "`", "|", "(", ")", ".", "1", " ", "\n", "{", "}", "text", "and"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map("".join))
def test_whatever_comes_out_compiles(template: str) -> None:
    try:
        expression = translate_template(template, TemplateUse.TEXT, KNOWN)
    except TemplateProblemError:
        return
    compile_expression(expression, where="test")


@given(st.lists(st.sampled_from(["{", "}", "%", "#", "a", "'", '"', "\n", " "]), max_size=12).map("".join))
def test_text_around_expressions_stays_as_it_is(text: str) -> None:
    around = "x" + text.replace("{{", "").removesuffix("{") + "x"
    expression = translate_template(around + "{{ .spec.image }}" + around, TemplateUse.TEXT, KNOWN)

    assert compile_expression(expression, where="test").render(SCOPE) == around + "nginx" + around


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(a ~ b)", "a ~ b"),
        ("(a) ~ (b)", "(a) ~ (b)"),
        ("(a ~ ')')", "a ~ ')'"),
        (r"(a ~ '\'')", r"a ~ '\''"),
        (r"(a ~ '\\').b | default('')", r"(a ~ '\\').b | default('')"),
    ],
)
def test_brackets_are_taken_away_only_from_around_all_of_it(text: str, found: str) -> None:
    assert strip_brackets(text) == found


def test_a_backslash_at_the_end_of_a_text_takes_no_bracket_with_it() -> None:
    found = translate_template(r'{{ (printf "%s\\" .spec.image).length }}', TemplateUse.VALUE, KNOWN)
    compile_expression(found, where="test")
