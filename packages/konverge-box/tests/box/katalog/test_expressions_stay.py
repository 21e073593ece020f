"""The text of an expression is never altered: what a template of a Katalog reads, the box reads, or it is reported."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge_box._internal.katalog import KatalogImport
from tests.box.katalog.katalogs import NAMES, import_sample
from tests.box.katalog.test_nothing_is_dropped import (
    BASE,
    HEAD,
    KATALOGS,
    VOCABULARY,
    Path,
    get_at,
    is_reported,
    paths,
    with_field,
)

NAME = "aB_Cd"
TEMPLATE = f"{{{{ .spec.{NAME} }}}}"


def import_value(katalog: Any) -> KatalogImport:
    return import_sample(yaml.dump(katalog, Dumper=yaml.CSafeDumper, sort_keys=False))


def replace_value(katalog: Any, path: Path, value: Any) -> Any:
    changed = copy.deepcopy(katalog)
    get_at(changed, path[:-1])[path[-1]] = value
    return changed


def leaves(value: Any) -> Iterator[Path]:
    for path in paths(value):
        found = get_at(value, path)
        if path not in HEAD and not isinstance(found, dict | list):
            yield path


def find_altered(found: KatalogImport) -> list[str]:
    """Return the lines of the box in which the name of the field is altered, or is in a template of the Katalog."""
    lines = [line for line in found.text.splitlines() if not line.lstrip().startswith("#")]
    altered = [line for line in lines if re.search(NAME, line, re.IGNORECASE) and f"spec.{NAME}" not in line]
    return altered + [line for line in lines if re.search(rf"(?<![\w'\])])\.spec\.{NAME}", line)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_template_in_any_field_is_translated_or_reported(name: str) -> None:
    altered = {
        path: lines
        for path in leaves(KATALOGS[name])
        if (lines := find_altered(import_value(replace_value(KATALOGS[name], path, TEMPLATE))))
    }

    assert altered == {}


def list_text_fields() -> Iterator[tuple[Path, str, Any]]:
    """Yield each known field, and a value of it with the template in the place of one text."""
    for path, fields in VOCABULARY.items():
        for key, value in fields.items():
            if not isinstance(value, dict | list):
                yield path, key, TEMPLATE
            for inner in leaves(value):
                yield path, key, replace_value(value, inner, TEMPLATE)


@pytest.mark.slow
def test_a_template_in_any_known_field_is_translated_or_reported() -> None:
    altered = {}
    for path, key, value in list_text_fields():
        if lines := find_altered(import_value(with_field(path, key, value))):
            altered[path, key, str(value)] = lines

    assert altered == {}


WORDS = st.text(st.characters(codec="ascii", exclude_characters="\"'\\{}%`", min_codepoint=32), min_size=1, max_size=12)
FIELDS = [path for path in leaves(BASE) if path[-1] in ("image", "host", "value", "default", "equals", "a", "url")]


@pytest.mark.slow
@given(st.sampled_from(FIELDS), WORDS)
def test_the_text_in_an_expression_stays_as_it_is(path: Path, word: str) -> None:
    found = import_value(replace_value(BASE, path, f'{{{{ if eq .spec.a "{word}" }}}}x{{{{ else }}}}y{{{{ end }}}}'))

    if not found.listed:
        texts = [text for text in _iter_texts(yaml.load(found.text, Loader=yaml.CSafeLoader)) if "'x' if" in text]
        assert texts
        assert all(f"'{word}'" in text for text in texts)


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(each)


def test_a_policy_of_a_cron_job_keeps_its_expression() -> None:
    job = {"name": "x", "image": "y", "schedule": "@daily"}
    made = ("spec", "crds", "app", "operatorBox", "onReconcile")

    policies = [
        import_value(with_field(made, "cronJobs", [{**job, "concurrencyPolicy": policy}])).text
        for policy in ("forbid", "{{ .spec.policyOfRuns }}")
    ]

    assert "concurrencyPolicy: Forbid\n" in policies[0]
    assert 'concurrencyPolicy: "{{ spec.policyOfRuns | default(omit) }}"\n' in policies[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_not_dropped(name: str) -> None:
    dropped = [
        path
        for path in leaves(KATALOGS[name])
        if NAME not in import_value(replace_value(KATALOGS[name], path, TEMPLATE)).text and not is_reported(name, path)
    ]

    assert dropped == []
