"""Conversion of external calls, which occur in several lists of a Katalog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from konverge_box._internal.katalog.condition_conversion import (
    NotConvertedError,
    convert_conditions,
    convert_each,
    take_fires,
)
from konverge_box._internal.katalog.expression_translator import TemplateUse
from konverge_box._internal.katalog.findings import INCLUDE, SLEEP, FindingReason, KatalogFields
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.value_conversion import MISSING, convert_text_field, convert_tree, set_if_present

__all__ = ["convert_calls"]


def convert_calls(items: list[KatalogFields], known: KnownFields) -> list[dict[str, Any]]:
    """Convert the external calls of all lists."""
    calls: list[dict[str, Any]] = []
    names: set[str] = set()
    otherwise = FindingReason("a call", "a part of it has no counterpart", "see its findings")
    for each, made in convert_each(_iter_calls(items), partial(_convert_call, known=known), otherwise):
        if made["name"] in names:
            each.reject_field(
                "name", "a call with a duplicate name", "names of results are unique in a box", "rename one"
            )
            continue
        names.add(made["name"])
        calls.append(made)
    return calls


def _iter_calls(items: Iterable[KatalogFields]) -> Iterator[KatalogFields]:
    for each in items:
        if "include" in each:
            each.notes.add_finding(each.build_path("include"), INCLUDE)
        else:
            yield each


def _convert_call(each: KatalogFields, known: KnownFields) -> dict[str, Any]:
    name = each.take_text("name") or ""
    found: dict[str, Any] = {"name": known.renamed.get(("external", name), name)}
    protocol = each.take_text("protocol") or "http"
    if protocol not in ("http", "prometheus", "redis", "postgres"):
        raise NotConvertedError(
            FindingReason(
                "a call", f"a box does not support the protocol {protocol[:40]!r}", "put a service in front of it"
            )
        )
    if protocol != "http":
        found["protocol"] = protocol
    take_fires(each)
    for key, use in (
        ("url", TemplateUse.REQUIRED),
        ("query", TemplateUse.TEXT),
        ("body", TemplateUse.TEXT),
        ("method", TemplateUse.REQUIRED),
    ):
        value = convert_text_field(each, key, use, known)
        if value is MISSING:
            raise NotConvertedError
        if value is not None:
            found[key] = value
    if "headers" in each:
        found["headers"] = convert_tree(
            each, each.take_typed("headers", dict) or {}, each.build_path("headers"), TemplateUse.TEXT, known
        )
    if "body" in found and "content-type" not in {key.lower() for key in found.get("headers", {})}:
        found.setdefault("headers", {})["Content-Type"] = "application/json"
    _convert_authentication(each, found, known)
    _convert_token(each, found, known)
    for key in ("timeout", "cacheFor"):
        if (value := each.take_text(key)) is not None:
            found[key] = value
    if expected := each.take_typed("expectedStatus", int):
        found["expectedStatus"] = [expected]
    if each.take_typed("continueOnError", bool):
        found["continueOnError"] = True
    if "retryBackoff" in each:
        set_if_present(found, "retry", _convert_retry(each) or None)
    found |= convert_conditions(each, known)
    each.report_remaining(
        {
            "sleep": SLEEP,
            "poolSize": FindingReason("the size of a pool", "konverge shares and limits connections", "remove it"),
        }
    )
    return found


_SECRET_KEY = ("name", "namespace", "key")


def _convert_authentication(each: KatalogFields, found: dict[str, Any], known: KnownFields) -> None:
    if "auth" not in each:
        return
    block = each.take_mapping("auth")
    made: dict[str, Any] = {}
    if "secretRef" in block:
        reference = block.take_mapping("secretRef")
        parts = {key: convert_text_field(reference, key, TemplateUse.REQUIRED, known) for key in _SECRET_KEY}
        if MISSING in parts.values():
            raise NotConvertedError
        made["secretRef"] = {key: value for key, value in parts.items() if value is not None}
        reference.report_remaining()
        if "namespace" not in made["secretRef"]:
            block.add_note(
                "secretRef",
                "without a namespace, a box uses the namespace of the custom resource, a Katalog that of the operator",
            )
    if (env := block.take_text("env")) is not None:
        made["env"] = env.removeprefix("$")
    if (header := block.take_text("header")) is not None:
        made["header"] = header
        if header != "Authorization":
            block.add_note("header", "a box sends the value as it is, without Bearer")
    block.report_remaining()
    found["auth"] = made


def _convert_token(each: KatalogFields, found: dict[str, Any], known: KnownFields) -> None:
    """Convert ``token`` of generations without ``auth``: a variable of the environment, a text or a template."""
    if "token" not in each:
        return
    token = convert_text_field(each, "token", TemplateUse.REQUIRED, known)
    if token is MISSING or not token:
        raise NotConvertedError(FindingReason("a call", "it has no convertible token", "write auth"))
    if "auth" in found:
        each.reject_field("token", "a token beside auth", "a call has one credential", "remove it")
    elif token.startswith("$"):
        found["auth"] = {"env": token.removeprefix("$").strip("{}")}
    else:
        found["headers"] = {**found.get("headers", {}), "Authorization": f"Bearer {token}"}


def _convert_retry(each: KatalogFields) -> dict[str, Any]:
    if isinstance(each.peek("retryBackoff"), str):
        initial = each.take_text("retryBackoff")
        return {} if initial is None else {"initial": initial}
    block = each.take_mapping("retryBackoff")
    found: dict[str, Any] = {}
    for key, here in (("initial", "initial"), ("max", "max")):
        if (period := block.take_text(key)) is not None:
            found[here] = period
    if isinstance(block.peek("multiplier"), str):
        block.reject_field("multiplier", "a factor", "expected a number", "write a number")
        block.take("multiplier")
    elif (factor := block.take("multiplier")) is not None:
        found["factor"] = factor
    if (attempts := block.take_typed("maxAttempts", int)) is not None:
        found["attempts"] = attempts
    block.report_remaining()
    return found
