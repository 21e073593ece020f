"""The compilation of calls: their order, and their validation errors."""

from __future__ import annotations

import sys

import pytest

from konverge.errors import ConfigurationError
from tests.box.calls.call_fixtures import WHERE, compile_calls


def test_calls_that_do_not_read_each_other_are_made_at_once() -> None:
    found = compile_calls("""
      - {name: a, url: "http://a.example"}
      - {name: d, url: "http://a.example/{{ external.b.body }}", headers: {X-C: "{{ external.c.body }}"}}
      - {name: b, url: "http://a.example"}
      - {name: c, url: "http://a.example", when: [{field: external.a.ok, equals: true}]}
    """)
    assert found.batches == (("a", "b"), ("c",), ("d",))


@pytest.mark.parametrize(
    "reads",
    [
        'url: "http://a.example/{{ external.a.body }}"',
        'url: "http://a.example", headers: {X-A: "{{ external.a.body }}"}',
        'url: "http://a.example", body: {deep: ["{{ external.a.json.x }}"]}',
        'url: "http://a.example", protocol: prometheus, query: "{{ external.a.body }}"',
        'url: "http://a.example", when: [{field: external.a.ok}]',
        'url: "http://a.example", or: [{field: "{{ external.a.ok }}"}]',
        'url: "http://a.example", auth: {secretRef: {name: "{{ external.a.body }}", key: k}}',
        'url: "http://a.example/{{ external | toJSON }}"',
    ],
)
def test_whatever_reads_a_result_waits_for_it(reads: str) -> None:
    found = compile_calls(f'[{{name: a, url: "http://a.example"}}, {{name: b, {reads}}}]')
    assert found.batches == (("a",), ("b",))


def test_calls_in_a_circle_are_refused() -> None:
    text = '[{name: a, url: "{{ external.b.body }}"}, {name: b, url: "{{ external.a.body }}"}]'
    with pytest.raises(ConfigurationError, match=r"external: these calls read each other: (a -> b|b -> a)"):
        compile_calls(text)


MISTAKES = {
    "a scheme": (
        "{name: a, url: 'ftp://a.example'}",
        "[0].url: expected a URL such as http://host/…; this one cannot be used: expected http:// or https:// and a "
        "host, found scheme ftp",
    ),
    "a user": ("{name: a, url: 'http://u:p@a.example'}", "expected no user and no password"),
    "a query over http": ("{name: a, url: 'http://a.example', query: up}", "[0].query: expected no query"),
    "no query": ("{name: a, url: 'http://a.example', protocol: prometheus}", "[0].query: expected a query, found none"),
    "a body for Redis": (
        "{name: a, url: 'redis://a.example', protocol: redis, query: GET a, body: b}",
        "[0].body: expected no body with protocol redis",
    ),
    "a method for PostgreSQL": (
        "{name: a, url: 'postgres://a.example', protocol: postgres, query: select 1, method: POST}",
        "[0].method: expected no method with protocol postgres",
    ),
    "a command that writes": (
        "{name: a, url: 'redis://a.example', protocol: redis, query: SET a b}",
        "[0].query: expected a command that only reads (",
    ),
    "a command by an expression": (
        "{name: a, url: 'redis://a.example', protocol: redis, query: '{{ spec.command }} a'}",
        "[0].query: expected a command that only reads (",
    ),
    "both secretRef and env": (
        "{name: a, url: 'http://a.example', auth: {env: A, secretRef: {name: a, key: b}}}",
        "[0].auth: expected either secretRef or env",
    ),
    "neither": ("{name: a, url: 'http://a.example', auth: {}}", "[0].auth: expected either secretRef or env"),
    "a credential in a header of ours": (
        "{name: a, url: 'http://a.example', auth: {env: A, header: Host}}",
        "[0].auth: header Host: expected a header that the operator does not set itself",
    ),
    "a time-out without end": ("{name: a, url: 'http://a.example', timeout: 1d}", "[0].timeout: expected from 0.001"),
    "no time at all": ("{name: a, url: 'http://a.example', timeout: 0s}", "[0].timeout: expected from 0.001"),
}


@pytest.mark.parametrize(("text", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_a_call_that_cannot_be_made_is_refused_where_it_stands(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        compile_calls(f"[{text}]")
    assert str(refused.value).startswith(WHERE)
    assert problem in str(refused.value)


def test_without_its_driver_a_call_to_postgresql_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'konverge\[postgres\]'"):
        compile_calls("[{name: a, url: 'postgres://a.example', protocol: postgres, query: select 1}]")


def test_other_calls_need_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert compile_calls("[{name: a, url: 'redis://a.example', protocol: redis, query: get a}]").batches == (("a",),)
