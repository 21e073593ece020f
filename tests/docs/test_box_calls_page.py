"""The examples in docs/box-calls.md are valid, and its tables are correct."""

from __future__ import annotations

import re

import msgspec
import yaml

from konverge_box._internal.calls import ExternalCalls
from konverge_box._internal.calls.call_result import MAX_BODY_BYTES, CallResult, build_external_result
from konverge_box._internal.calls.caller import MAX_CALLS_PER_HOST
from konverge_box._internal.file import ExternalCall
from konverge_resolution._internal.network.redirects import MAX_REDIRECTS
from tests.docs.pages import find_code_blocks, read_page

PAGE = "docs/box-calls.md"


def test_the_calls_of_the_page_can_be_made_and_wait_as_it_says() -> None:
    example = yaml.safe_load(find_code_blocks(PAGE, "yaml")[0])["external"]

    assert ExternalCalls(msgspec.convert(example, tuple[ExternalCall, ...]), "external").batches == (
        ("settings", "load", "plan"),
        ("flags",),
    )


def test_the_fields_of_results_are_those_of_the_page() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*?) \| ", read_page(PAGE).partition("## Limits")[0], re.MULTILINE)
    fields: dict[str, set[str]] = {protocol: set() for protocol in ("http", "prometheus", "redis", "postgres")}
    for names, protocols in rows:
        for protocol in fields if protocols == "all" else protocols.split(", "):
            fields[protocol] |= set(re.findall(r"`(\w+)`", names))

    assert fields == {protocol: set(build_external_result(protocol, CallResult())) for protocol in fields}


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| (.*?) \| (.*) \|$", read_page(PAGE), re.MULTILINE))

    assert rows["redirects"].startswith(f"{MAX_REDIRECTS};")
    assert rows["a host"].startswith(f"{MAX_CALLS_PER_HOST} calls")
    assert rows["an answer, a body that is sent"].startswith(f"{MAX_BODY_BYTES >> 20} MiB;")
