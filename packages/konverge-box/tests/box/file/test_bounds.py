"""Reading ends soon for every content of a file, and each error has a position in it."""

from __future__ import annotations

import time
from textwrap import indent
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge_box._internal.file import KINDS, BoxFieldError, find_file_errors, load_box
from konverge_box._internal.file.expression_scopes import STEPS
from konverge_box._internal.file.model import CustomResource
from konverge_box._internal.file.yaml_source import parse_source
from tests.box.file.sample_boxes import HEADER, build_box_text

NESTED = "".join(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 12))
HUGE = {
    "aliases of aliases": f"a0: &a0 [x]\n{NESTED}",
    "merges of merges": "a0: &a0 {x: y}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12)),
    "brackets": "[" * 100_000,
    "braces": "{a: " * 100_000,
    "a million items": HEADER + f"  imports: [{'1,' * 1_000_000}]",
    "half a million items": HEADER + f"  imports: [{'1,' * 500_000}]",
    "a megabyte of text": HEADER.replace("name: test", f"name: {'a' * 1_000_000}"),
    "a megabyte of a name": HEADER.replace("web:", f"{'w' * 1_000}:") + f"  ? {'a' * 1_000_000}\n  : 1\n",
    "a megabyte of expressions": build_box_text(f"finalizers: ['{'{{ spec.a }}' * 60_000}']"),
    "a deep expression": build_box_text(f"status: {{fields: [{{path: a, value: '{{{{ {'(' * 20_000} }}}}'}}]}}"),
    "ten thousand mistakes": HEADER + "".join(f"  x{number}: 1\n" for number in range(10_000)),
    "digits": f"a: {'9' * 1_000_000}",
}


@pytest.mark.parametrize("name", HUGE)
def test_what_would_fill_memory_or_time_is_refused(name: str) -> None:
    began = time.process_time()

    found = find_file_errors(HUGE[name])

    assert 0 < len(found) <= 1_000
    assert time.process_time() - began < 10
    assert all(len(str(error)) < 2_000 for error in found)


WORDS = st.sampled_from(
    [
        *(
            "apiVersion",
            "kind",
            "metadata",
            "spec",
            "crds",
            "web",
            "resource",
            "name",
            "when",
            "or",
            "field",
            "forEach",
        ),
        *("as", "in", "value", "manifest", "image", "port", "data", "groups", "run", "delete", "path", "fields", "<<"),
        *(name for name in STEPS),
        *KINDS,
        *(
            "{{ spec.a }}",
            "{{ item }}",
            "{{",
            "{% if a %}",
            "{{ cross.a.b }}",
            "equals",
            "crd",
            "selector",
            "url",
            "a b",
        ),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | WORDS | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | SCALARS, inner, max_size=5),
    max_leaves=25,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("ab: -#{}[]'\"\n", max_size=9),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=20,
)
STEP_VALUES = st.dictionaries(st.sampled_from([*STEPS, "resource", "dependsOn", "reconcile"]), VALUES, max_size=4)


def is_in(error: BoxFieldError, text: str) -> bool:
    return 1 <= error.line <= text.count("\n") + 2 and error.column >= 1


@given(st.text() | st.binary())
def test_any_text_is_a_box_or_has_mistakes(text: str | bytes) -> None:
    assert all(error.message for error in find_file_errors(text))


@pytest.mark.slow
@given(VALUES)
def test_any_yaml_is_a_box_or_has_mistakes_in_it(value: Any) -> None:
    text = yaml.safe_dump(value)

    assert all(is_in(error, text) for error in find_file_errors(text))


@pytest.mark.slow
@given(STEP_VALUES)
def test_any_steps_load_or_have_mistakes_in_them(steps: dict[str, Any]) -> None:
    text = HEADER.replace("      resource:", "      resources:" if "resource" in steps else "      resource:")
    text += indent(yaml.safe_dump(steps), " " * 6) if steps else ""

    found = find_file_errors(text)

    assert all(is_in(error, text) for error in found)
    if not found:
        assert isinstance(load_box(text).spec.crds["web"], CustomResource)


@pytest.mark.slow
@given(PLAIN)
def test_plain_values_are_read_as_they_were_written(value: Any) -> None:
    written = yaml.safe_dump({"a": value}, allow_unicode=True)

    (source,) = parse_source(written, "f")

    assert source.errors == []
    assert source.value == {"a": value}
    assert set(source.positions) >= {(), ("a",)}


def test_a_box_of_a_thousand_lines_is_linted_in_half_a_second() -> None:
    entry = """\
      onReconcile:
        deployments:
          - image: "{{ spec.image }}"
            replicas: "{{ spec.replicas | default(1) }}"
            env: {A: "{{ metadata.name }}", B: "{{ spec.b }}"}
            resources: {requests: {cpu: 100m}}
        services:
          - port: 80
"""
    crds = "".join(
        f"    web{number}:\n      resource: {{apiVersion: a.dev/v1, kind: Web{number}}}\n{entry}"
        for number in range(100)
    )
    text = HEADER.partition("    web:")[0] + crds
    assert text.count("\n") >= 1_000
    find_file_errors(text)  # Kubernetes' schemas and the language of expressions are read once a process
    began = time.process_time()

    assert find_file_errors(text) == ()

    assert time.process_time() - began < 0.5
