"""External calls, which stand in several lists there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from konverge.box.katalog.conditions import NotCarriedError, carried, conditions, fires
from konverge.box.katalog.expressions import Use
from konverge.box.katalog.findings import INCLUDE, SLEEP, Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.values import MISSING, text, tree

__all__ = ["calls"]


def calls(items: list[Fields], known: Known) -> list[dict[str, Any]]:
    """External calls of all lists."""
    found: list[dict[str, Any]] = []
    names: set[str] = set()
    otherwise = Why("a call", "a part of it has no counterpart", "see what is listed for it")
    for each, made in carried(_written_here(items), partial(_call, known=known), otherwise):
        if made["name"] in names:
            each.refuse("name", "a second call of that name", "all results stand side by side here", "rename one")
            continue
        names.add(made["name"])
        found.append(made)
    return found


def _written_here(items: Iterable[Fields]) -> Iterator[Fields]:
    for each in items:
        if "include" in each:
            each.notes.list(each.at("include"), INCLUDE)
        else:
            yield each


def _call(each: Fields, known: Known) -> dict[str, Any]:
    name = each.text("name") or ""
    found: dict[str, Any] = {"name": known.renamed.get(("external", name), name)}
    protocol = each.text("protocol") or "http"
    if protocol not in ("http", "prometheus", "redis", "postgres"):
        raise NotCarriedError(Why("a call", f"there is no protocol {protocol[:40]!r}", "put a service in front of it"))
    if protocol != "http":
        found["protocol"] = protocol
    fires(each)
    for key, use in (("url", Use.REQUIRED), ("query", Use.TEXT), ("body", Use.TEXT), ("method", Use.REQUIRED)):
        value = text(each, key, use, known)
        if value is MISSING:
            raise NotCarriedError
        if value is not None:
            found[key] = value
    if "headers" in each:
        found["headers"] = tree(each, each.typed("headers", dict) or {}, each.at("headers"), Use.TEXT, known)
    if "body" in found and "content-type" not in {key.lower() for key in found.get("headers", {})}:
        found.setdefault("headers", {})["Content-Type"] = "application/json"
    _authenticate(each, found)
    for key in ("timeout", "cacheFor"):
        if (value := each.text(key)) is not None:
            found[key] = value
    if expected := each.typed("expectedStatus", int):
        found["expectedStatus"] = [expected]
    if each.typed("continueOnError", bool):
        found["continueOnError"] = True
    if "retryBackoff" in each:
        found["retry"] = _retry(each)
    found |= conditions(each, known)
    each.close(
        {
            "sleep": SLEEP,
            "poolSize": Why("the size of a pool", "connections are shared and bounded by konverge", "remove it"),
            "token": Why(
                "a token out of the environment", "generations before auth have it", "write auth: {env: NAME}"
            ),
        }
    )
    return found


def _authenticate(each: Fields, found: dict[str, Any]) -> None:
    if "auth" not in each:
        return
    block = each.below("auth")
    made: dict[str, Any] = {}
    if "secretRef" in block:
        reference = block.below("secretRef")
        made["secretRef"] = {
            key: value for key in ("name", "namespace", "key") if (value := reference.text(key)) is not None
        }
        reference.close()
        if "namespace" not in made["secretRef"]:
            block.decide(
                "secretRef", "without a namespace it is the custom resource's, where it is the operator's there"
            )
    if (env := block.text("env")) is not None:
        made["env"] = env.removeprefix("$")
    if (header := block.text("header")) is not None:
        made["header"] = header
        if header != "Authorization":
            block.decide("header", "the value goes there as it is, without Bearer")
    block.close()
    found["auth"] = made


def _retry(each: Fields) -> dict[str, Any]:
    value = each.peek("retryBackoff")
    if isinstance(value, str):
        each.take("retryBackoff")
        return {"initial": value}
    block = each.below("retryBackoff")
    found: dict[str, Any] = {}
    for key, here in (("initial", "initial"), ("max", "max")):
        if (period := block.text(key)) is not None:
            found[here] = period
    if (factor := block.take("multiplier")) is not None:
        found["factor"] = factor
    if (attempts := block.typed("maxAttempts", int)) is not None:
        found["attempts"] = attempts
    block.close()
    return found
