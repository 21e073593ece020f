"""Rules: what changes a custom resource's spec, and what has to hold of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from konverge.box.katalog.conditions import NotCarriedError, carried, conditions, field_of, fires, operator_of
from konverge.box.katalog.expressions import Use, has_template
from konverge.box.katalog.findings import INCLUDE, Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.values import MISSING, TYPES, text, tree

__all__ = ["mutations", "validations"]

_EARLY_CALLS = Why(
    "calls before validation",
    "external runs after validation here",
    "move the call to onReconcile, or ask in a webhook",
)
_LINK = Why("the field that a user interface marks", "there is none", "name the field in the message")


def mutations(fields: Fields, known: Known) -> list[dict[str, Any]]:
    """Defaults and overrides, in their order."""
    found: list[dict[str, Any]] = []
    if fields.typed("mutateFirst", bool) is not None:
        fields.decide("mutateFirst", "mutation is always before validation")
    for rule, made in carried(fields.items("rules"), partial(_mutation, known=known), _of_rule("mutation")):
        found.append(made)
        rule.close({"link": _LINK})
    fields.close({"include": INCLUDE, "external": _EARLY_CALLS})
    return found


def validations(fields: Fields, known: Known) -> list[dict[str, Any]]:
    """What has to hold."""
    found: list[dict[str, Any]] = []
    for rule, made in carried(fields.items("rules"), partial(_validation, known=known), _of_rule("validation")):
        if rule.text("valueType") is not None:
            rule.decide("valueType", "values are compared as what they are")
        found.append(made)
        rule.close({"link": _LINK})
    fields.close({"include": INCLUDE, "external": _EARLY_CALLS})
    return found


def _mutation(rule: Fields, known: Known) -> dict[str, Any]:
    field = (rule.text("field") or "").removeprefix(".")
    if not field or has_template(field):
        raise NotCarriedError(Why("a rule of mutation", "its field is computed", "write a rule for each field"))
    found: dict[str, Any] = {"field": field, **conditions(rule, known)}
    fires(rule)
    type_ = rule.text("valueType")
    use = {"int": Use.NUMBER, "float": Use.NUMBER, "bool": Use.BOOLEAN}.get(type_ or "", Use.VALUE)
    key = "override" if "override" in rule else "default"
    if key == "override" and "default" in rule:
        rule.take("default")
        rule.refuse("default", "a default beside an override", "the override wins, there as well", "remove it")
    if key not in rule:
        raise NotCarriedError(Why("a rule of mutation", "it has neither default nor override", "remove it"))
    value = rule.take(key)
    made = tree(rule, value, rule.at(key), use, known)
    if made is MISSING:
        raise NotCarriedError
    found[key] = made
    if type_ in TYPES:
        found["type"] = TYPES[type_]
    elif type_ is not None:
        rule.refuse(
            "valueType", "the type of a value", f"there is no type {type_[:40]!r}", "use int, float, bool, string"
        )
    elif not isinstance(value, str):
        rule.decide(key, "the value keeps its type, where text would be written there")
    return found


def _validation(rule: Fields, known: Known) -> dict[str, Any]:
    made = {"field": field_of(rule, known), **operator_of(rule, known)}
    fires(rule)
    message = text(rule, "message", Use.TEXT, known)
    if message not in (None, MISSING):
        made["message"] = message
    if (action := rule.text("action")) not in (None, "deny"):
        made["action"] = action
    return made | conditions(rule, known)


def _of_rule(word: str) -> Why:
    return Why(f"a rule of {word}", "a part that it needs has no counterpart", "see what is listed for it")
