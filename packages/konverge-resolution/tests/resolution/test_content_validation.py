"""What came: one object of a kind that may be fetched, and nothing else."""

from __future__ import annotations

import json

import pytest
import yaml

from konverge_resolution import MAX_CONTENT_BYTES, Reason, ResolutionError
from konverge_resolution._internal.content_validation import AllowedKinds, parse_content

TASK = b"apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: build}\n"


def expect_content_error(data: bytes, allowed: AllowedKinds | None = None) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        parse_content(data, allowed or AllowedKinds())
    return caught.value


def test_an_object_is_read() -> None:
    assert parse_content(TASK)["metadata"] == {"name": "build"}


def test_json_is_yaml() -> None:
    assert parse_content(b'{"apiVersion": "v1", "kind": "ConfigMap"}')["kind"] == "ConfigMap"


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("plain text", b"root:x:0:0:root:/root:/bin/bash\nbin:x:1:1:bin:/bin:/sbin/nologin\n"),
        ("a token", b"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLXNlY3JldA"),
        ("json without a kind", b'{"apiVersion": "v1", "password": "signature-secret"}'),
        ("binary", b"\x7fELF\xff\xfe" * 50),
        ("nothing", b" \n"),
        ("a comment", b"# signature-secret\n"),
        ("a list", b"- signature-secret\n"),
        ("two documents", TASK + b"---\n" + TASK),
        ("a key", b"-----BEGIN PRIVATE KEY-----\nsignature-secret\n-----END PRIVATE KEY-----\n"),
        ("a field that stands twice", TASK + b"kind: signature-secret\n"),
        ("yaml that is broken", b"apiVersion: v1\nkind: [signature-secret\n"),
        ("a tag of Python", b"apiVersion: v1\nkind: X\nspec: !!python/object/apply:os.system [signature-secret]\n"),
    ],
)
def test_what_is_no_definition_is_refused_and_not_shown(what: str, data: bytes) -> None:
    error = expect_content_error(data)
    assert error.reason is Reason.UNSUPPORTED_CONTENT, what
    assert "secret" not in str(error)
    assert "root" not in str(error)


def test_a_secret_is_never_a_definition() -> None:
    secret = b"apiVersion: v1\nkind: Secret\ndata: {password: c2VjcmV0}\n"
    listed = b"apiVersion: v1\nkind: List\nitems:\n- " + secret.replace(b"\n", b"\n  ")
    for data in (secret, listed, listed.replace(b"List", b"SecretList")):
        for allowed in (AllowedKinds(), AllowedKinds(("Secret", "List"))):
            assert expect_content_error(data, allowed).reason is Reason.UNSUPPORTED_CONTENT


SECRET = "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {password: aHVudGVyMg==}}"


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("another case", SECRET.replace("Secret", "secret")),
        ("another case", SECRET.replace("Secret", "SECRET")),
        ("the plural", SECRET.replace("Secret", "secrets")),
        ("a letter that looks alike", SECRET.replace("Secret", "\u0405ecret")),
        ("a letter without width", SECRET.replace("Secret", "'Secret\u200b'")),
        ("a blank", SECRET.replace("Secret", "'Secret '")),
        ("a group for the core", SECRET.replace("v1", "core/v1", 1)),
        ("another case of the version", SECRET.replace("v1", "V1", 1)),
        ("no group before the slash", SECRET.replace("v1", "/v1", 1)),
        ("a second slash", SECRET.replace("v1", "a/b/v1", 1)),
        ("another version", SECRET.replace("v1", "v2", 1)),
        ("a field in another case", SECRET.replace("kind: Secret", "kind: ConfigMap, Kind: Secret")),
        ("a list of one kind", f"{{apiVersion: v1, kind: PodList, items: [{SECRET}]}}"),
        ("a list in another case", f"{{apiVersion: v1, kind: podlist, items: [{SECRET}]}}"),
        ("a bare list in another case", f"{{apiVersion: v1, kind: list, items: [{SECRET}]}}"),
        ("a list of a custom kind", f"{{apiVersion: a.example/v1, kind: BoxList, items: [{SECRET}]}}"),
        ("a list in a list", "{apiVersion: v1, kind: PodList, items: [{apiVersion: v1, kind: List, items: []}]}"),
        (
            "a list in a list of lists",
            "{apiVersion: a.example/v1, kind: BoxList, items: [{apiVersion: a.example/v1, kind: BoxList, items: "
            f"[{{apiVersion: v1, kind: ConfigMap}}, {SECRET}]}}]}}",
        ),
        ("items of what is called no list", f"{{apiVersion: tekton.dev/v1, kind: Task, items: [{SECRET}]}}"),
        ("items of what is called otherwise", f"{{apiVersion: v1, kind: PodLists, items: [{SECRET}]}}"),
        (
            "items of an item",
            f"{{apiVersion: v1, kind: PodList, items: [{{kind: Pod, apiVersion: v1, items: [{SECRET}]}}]}}",
        ),
        ("items in another case", f"{{apiVersion: v1, kind: PodList, Items: [{SECRET}]}}"),
        ("a list of Secrets", "{apiVersion: v1, kind: secretlist, items: [{metadata: {name: a}}]}"),
    ],
)
@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("rules", [(), ("Secret", "PodList", "BoxList.a.example", "ConfigMap")])
def test_what_some_reader_takes_for_a_secret_is_none_either(
    what: str, text: str, form: str, rules: tuple[str, ...]
) -> None:
    data = text.encode() if form == "yaml" else json.dumps(yaml.safe_load(text)).encode()
    error = expect_content_error(data, AllowedKinds(rules))
    assert error.reason is Reason.UNSUPPORTED_CONTENT, what
    assert "aHVudGVyMg" not in str(error)


def test_the_object_of_a_list_that_is_refused_is_named() -> None:
    listed = f"{{apiVersion: v1, kind: PodList, items: [{{metadata: {{name: a}}}}, {SECRET}]}}"
    assert (
        "the content has items[1], which is of a kind that must not be fetched"
        in expect_content_error(listed.encode()).message
    )


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}]}", ("PodList",)),
        ("{apiVersion: v1, kind: PodList, items: [{apiVersion: v1, kind: Pod}]}", ("PodList",)),
        (
            "{apiVersion: shop.example/v1, kind: PriceList, items: [{name: a, price: 3}, b]}",
            ("PriceList.shop.example",),
        ),
        ("{apiVersion: shop.example/v1, kind: Secret}", ()),
        ("{apiVersion: shop.example/v1, kind: Box, spec: {template: {apiVersion: v1, kind: Secret}}}", ()),
    ],
)
def test_what_only_has_a_list_or_a_secret_in_its_name_is_a_definition(text: str, rules: tuple[str, ...]) -> None:
    assert parse_content(text.encode(), AllowedKinds(rules)) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"apiVersion": "v1",\n"kind": "ConfigMap",\n"kind": "Task"}', 3),
        ('{"apiVersion": "v1",\n"kind": "ConfigMap",\n"\\u006bind": "Task"}', 3),
        ("apiVersion: v1\nkind: Task\nspec:\n  steps:\n  - {a: 1}\n  - b:\n      c: 1\n      c: 2\n", 8),
        ("apiVersion: v1\nkind: Task\nspec: &a {x: 1}\nmore: *a\nlast:\n  'x': 1\n  x: 2\n", 7),
    ],
)
def test_a_field_that_stands_twice_anywhere_is_told_with_its_line(text: str, line: int) -> None:
    assert f"an error in line {line}: duplicate field" in expect_content_error(text.encode()).message


def test_merge_keys_may_bring_what_a_mapping_has_itself_in_whatever_order_they_are_read() -> None:
    merged = TASK + b"spec:\n  deep:\n    deeper: &a {<<: &b {k: 1}, k: 2}\nother: {<<: *a, k: 3}\n"
    found = parse_content(merged)
    assert (found["spec"]["deep"]["deeper"], found["other"]) == ({"k": 2}, {"k": 3})


@pytest.mark.parametrize(
    ("rules", "is_allowed"),
    [
        ((), True),
        (("*.tekton.dev",), True),
        (("Task.tekton.dev",), True),
        (("Pipeline.tekton.dev",), False),
        (("Task",), False),
    ],
)
def test_kinds_outside_of_the_list_are_refused(rules: tuple[str, ...], is_allowed: bool) -> None:
    allowed = AllowedKinds.parse(rules)
    if is_allowed:
        assert parse_content(TASK, allowed)["kind"] == "Task"
    else:
        assert expect_content_error(TASK, allowed).reason is Reason.UNSUPPORTED_CONTENT


@pytest.mark.parametrize("rule", ["", "*", "task", "Task.", "Ta sk", "a.b"])
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        AllowedKinds.parse([rule])


def test_a_mebibyte_passes_and_one_byte_more_does_not() -> None:
    text = TASK + b"spec: '"
    full = text + b"x" * (MAX_CONTENT_BYTES - len(text) - 1) + b"'"
    assert parse_content(full)["kind"] == "Task"
    assert expect_content_error(full + b"\n").reason is Reason.TOO_LARGE


@pytest.mark.parametrize(
    ("what", "data"),
    [
        (
            "aliases",
            b"a: &a [x,x,x,x,x,x,x,x,x]\n"
            + b"".join(
                f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n".encode() for n in range(9)
            ),
        ),
        ("nesting", b"[" * 10_000),
        ("a document that contains itself", b"&a [*a]"),
    ],
)
def test_yaml_bombs_are_refused(what: str, data: bytes) -> None:
    assert expect_content_error(data).reason is Reason.UNSUPPORTED_CONTENT, what


@pytest.mark.parametrize("value", [".nan", "-.inf", "!!binary aGk=", "!!set {a}", "!!bool x", '!!int ""'])
def test_what_json_cannot_say_is_no_definition(value: str) -> None:
    assert expect_content_error(TASK + f"spec: [{value}]\n".encode()).reason is Reason.UNSUPPORTED_CONTENT


def test_names_of_fields_are_texts_and_none_stands_twice_in_another_spelling() -> None:
    assert parse_content(TASK + b"spec: {1: a, yes: b}\n")["spec"] == {"1": "a", "true": "b"}
    for twice in (b"{1: a, '1': b}", b"{1: a, 0x1: b}", b"{yes: a, on: b}", b"{~: a}"):
        assert expect_content_error(TASK + b"spec: " + twice).reason is Reason.UNSUPPORTED_CONTENT


def test_what_only_looks_like_a_number_to_the_base_of_sixty_is_the_text_that_it_is() -> None:
    long = "1:" * 400_000 + "1"  # as a number, it would take a minute in which nothing else is done
    assert parse_content(TASK + f"spec: [12:30, 1:30.5, {long}]\n".encode())["spec"] == ["12:30", "1:30.5", long]


def test_a_document_of_too_many_values_is_refused_before_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yaml.load_all", lambda *_, **__: pytest.fail("it was loaded"))
    for data in (TASK + b"spec: [" + b"1," * 400_000 + b"]", TASK + b"---\n" * 200_000):
        assert "more than 100,000 values" in expect_content_error(data).message
