"""What docs/box-calls.md shows can be made, and its tables are true."""

from __future__ import annotations

import re

import msgspec
import yaml

from konverge.box.calls import Calls
from konverge.box.calls.answers import LARGEST_BODY, Answer, result_of
from konverge.box.calls.caller import CALLS_TO_A_HOST
from konverge.box.file import ExternalCall
from konverge.network.redirects import MOST_REDIRECTS
from tests.docs.pages import blocks, text_of

PAGE = "docs/box-calls.md"


def test_the_calls_of_the_page_can_be_made_and_wait_as_it_says() -> None:
    shown = yaml.safe_load(blocks(PAGE, "yaml")[0])["external"]

    assert Calls(msgspec.convert(shown, tuple[ExternalCall, ...]), "external").waves == (
        ("settings", "load", "plan"),
        ("flags",),
    )


def test_the_fields_of_results_are_those_of_the_page() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| ", text_of(PAGE).partition("## Limits")[0], re.MULTILINE)
    told: dict[str, set[str]] = {protocol: set() for protocol in ("http", "prometheus", "redis", "postgres")}
    for names, protocols in rows:
        for protocol in told if protocols == "all" else protocols.split(", "):
            told[protocol] |= set(re.findall(r"`(\w+)`", names))

    assert told == {protocol: set(result_of(protocol, Answer())) for protocol in told}


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| (.*?) \| (.*) \|$", text_of(PAGE), re.MULTILINE))

    assert rows["redirects"].startswith(f"{MOST_REDIRECTS};")
    assert rows["a host"].startswith(f"{CALLS_TO_A_HOST} calls")
    assert rows["an answer, a body that is sent"].startswith(f"{LARGEST_BODY >> 20} MiB;")
