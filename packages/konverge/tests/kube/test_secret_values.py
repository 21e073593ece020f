"""Values of Secrets are recognized in texts of other programs in any escaped form."""

from __future__ import annotations

import base64
import html
import json
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.kube.secret_values import SecretValues
from konverge.kube import Object

TOKEN = 'q7"Zk\\2/x+9 Lm\n4tR-bv'


def secret(name: str = "db", version: str | None = None, **data: str) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": "default"} | ({"resourceVersion": version} if version else {})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def knowing(*values: str) -> SecretValues:
    found = SecretValues()
    for number, value in enumerate(values):
        found.add(secret(f"s{number}", token=value))
    return found


def escape_as_go(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64 for URLs, without padding": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "as JSON": json.dumps,
    "as JSON in JSON": lambda text: json.dumps(json.dumps({"found": text})),
    "as Go quotes": escape_as_go,
    "as Python quotes": repr,
    "in a URL": lambda text: quote(text, safe=""),
    "in a form": quote_plus,
    "in HTML": html.escape,
    "broken off": lambda text: text[:14],
    "broken off with dots": lambda text: f'"{text[:12]}..." (21 characters)',
    "the end of it broken off in base64": lambda text: base64.b64encode(text.encode()).decode()[:20],
}


@pytest.mark.parametrize("form", WRITTEN)
def test_a_value_is_hidden_in_whichever_form_it_is_quoted(form: str) -> None:
    text = f"spec.type: Unsupported value: {WRITTEN[form](TOKEN)}"

    redacted = knowing(TOKEN).hide(text)

    letters = "".join(letter for letter in TOKEN if letter.isalnum())
    assert redacted.startswith("spec.type: Unsupported value: ")
    assert "***" in redacted
    parts = (letters[:4], letters[4:8], "Lm", "4tR", WRITTEN["in base64"](TOKEN)[:8])
    assert [part for part in parts if part in redacted] == []


@pytest.mark.parametrize("escape", ["&#x27;", "&#X27;", "&#39;", "&apos;", "\\u0027", "\\x27", "%27"])
def test_an_escaped_character_inside_of_a_value_does_not_show_it(escape: str) -> None:
    assert knowing("00000'0").hide(f"found 00000{escape}0") == "found ***"


@pytest.mark.slow
@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=6, max_size=80), st.data())
def test_no_value_is_left_in_any_form(value: str, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from([form for form in WRITTEN if "broken" not in form]))
    written = WRITTEN[form](value)
    values = knowing(value)

    if value.strip() and value.lower() not in ("true", "false", "none", "null"):
        assert written not in values.hide(f"the server found {written} and refuses it")


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ('{"auths": {"r.io": {"username": "me", "password": "s3cr3t-of-r"}}}', "s3cr3t-of-r"),
        ("user=me\nPASSWORD=s3cr3t-of-env\n", "s3cr3t-of-env"),
        ("postgres://me:s3cr3tpw@db.test/app", "s3cr3tpw"),
        ("-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n", "hkiG9w0BAQEFAASC"),
    ],
)
def test_what_is_copied_out_of_a_file_is_hidden_too(whole: str, part: str) -> None:
    assert part not in knowing(whole).hide(f'env[0].value: Invalid value: "{part}": too weak')


@pytest.mark.parametrize(
    "text",
    [
        'Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
        'configmaps "settings" is forbidden: exceeded quota: few, requested: configmaps=1, used: configmaps=2',
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert knowing(TOKEN, "a", "", "true", "ab").hide(text) == text


def test_a_short_value_is_hidden_only_as_a_word() -> None:
    values = knowing("4711x")

    assert values.hide("pin 4711x, not 4711xy") == "pin ***, not 4711xy"


def test_the_name_of_an_object_is_shown_although_it_is_a_value_too() -> None:
    text = 'StatefulSet.apps "postgres" is invalid'

    assert knowing("postgres").hide(text, public={"postgres"}) == text
    assert knowing("postgres").hide(text) == 'StatefulSet.apps "***" is invalid'


def test_what_is_no_secret_is_not_remembered() -> None:
    values = SecretValues()
    for kind in ("ConfigMap", None):
        values.add({**secret(token=TOKEN), "kind": kind})
    values.add({"apiVersion": "v1", "kind": "Secret", "metadata": None, "data": [1], "stringData": {"a": 1}})

    assert values.hide(TOKEN) == TOKEN


def test_a_rotated_secret_is_hidden_with_both_of_its_values() -> None:
    values = SecretValues()
    values.add(secret(version="1", token="the-first-of-them"))
    values.add(secret(version="2", token="rotated-since-then"))

    assert values.hide("the-first-of-them rotated-since-then") == "*** ***"


@pytest.mark.slow
def test_it_forgets_what_was_not_met_for_long_and_stays_small() -> None:
    values = SecretValues()
    for number in range(30_000):
        values.add_text(f"{number:x}-value-{number}")
        values.add_text("the-one-that-is-always-there")

    assert values.hide("the-one-that-is-always-there") == "***"
    assert values.hide("752f-value-29999") == "***"
    assert values.hide("found 0-value-0 there") == "found 0-value-0 there"


def test_a_long_text_and_many_values_that_look_alike_take_no_longer_than_they_should() -> None:
    values = SecretValues()
    for number in range(2000):
        values.add_text(f"https://example.test/a/very/long/path/that/all/of/them/share/{number}")
    begun = time.process_time()

    values.hide("https://example.test/a/very/long/path/that/all/of/them/share/" * 200)

    assert time.process_time() - begun < 5


@pytest.mark.slow
def test_of_a_text_that_nobody_reads_the_beginning_is_shown() -> None:
    redacted = knowing(TOKEN).hide("x y " * 100_000 + TOKEN)

    assert len(redacted) == 65_536
    assert knowing(TOKEN).is_in("x y " * 100_000 + TOKEN)
    assert not knowing(TOKEN).is_in("x y " * 100_000)


def test_a_value_of_backslashes_is_found_without_trying_endlessly_many_ways() -> None:
    values = SecretValues()
    values.add_text("\\" * 200 + "!")
    assert values.hide("quoted: " + "\\" * 400) == "quoted: " + "\\" * 400
    assert values.hide("quoted: " + "\\" * 400 + "!") == "quoted: ***"


@pytest.mark.slow
def test_thousands_of_values_without_letters_are_found_and_take_no_longer_than_they_should() -> None:
    values = SecretValues()
    found = [f"{number:b}".translate({ord("0"): "-", ord("1"): "+"}) * 10 for number in range(1024, 5024)]
    begun = time.process_time()
    values.add({"apiVersion": "v1", "kind": "Secret", "stringData": {str(at): value for at, value in enumerate(found)}})

    redacted = [values.hide(f"refused: {value}") for value in (found[0], found[-1])]

    assert redacted == ["refused: ***"] * 2
    assert time.process_time() - begun < 10
