"""Conversion of the rules that change and validate a custom resource's spec."""

from __future__ import annotations

from functools import partial
from typing import Any

from konverge_box._internal.katalog.condition_conversion import (
    NotConvertedError,
    convert_conditions,
    convert_each,
    convert_field,
    convert_operator,
    take_fires,
)
from konverge_box._internal.katalog.expression_translator import TemplateUse
from konverge_box._internal.katalog.findings import INCLUDE, FindingReason, KatalogFields
from konverge_box._internal.katalog.go_template import has_template
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.value_conversion import MISSING, TYPES, convert_text_field, convert_tree

__all__ = ["convert_mutations", "convert_validations"]

_EARLY_CALLS = FindingReason(
    "calls before validation",
    "external runs after validation in a box",
    "move the call to onReconcile, or call it in a webhook",
)
_LINK = FindingReason("a field for a user interface", "a box has none", "name the field in the message")


def convert_mutations(fields: KatalogFields, known: KnownFields) -> list[dict[str, Any]]:
    """Convert defaults and overrides, in order."""
    found: list[dict[str, Any]] = []
    if fields.take_typed("mutateFirst", bool) is not None:
        fields.add_note("mutateFirst", "a box always runs mutation before validation")
    for rule, made in convert_each(
        fields.take_items("rules"), partial(_convert_mutation, known=known), _build_rule_reason("mutation")
    ):
        found.append(made)
        rule.report_remaining({"link": _LINK})
    fields.report_remaining({"include": INCLUDE, "external": _EARLY_CALLS})
    return found


def convert_validations(fields: KatalogFields, known: KnownFields) -> list[dict[str, Any]]:
    """Convert the validation rules, in order."""
    found: list[dict[str, Any]] = []
    for rule, made in convert_each(
        fields.take_items("rules"), partial(_convert_validation, known=known), _build_rule_reason("validation")
    ):
        if rule.take_text("valueType") is not None:
            rule.add_note("valueType", "a box compares values with their own types")
        found.append(made)
        rule.report_remaining({"link": _LINK})
    fields.report_remaining({"include": INCLUDE, "external": _EARLY_CALLS})
    return found


def _convert_mutation(rule: KatalogFields, known: KnownFields) -> dict[str, Any]:
    field = (rule.take_text("field", may_be_template=True) or "").removeprefix(".")
    if not field or has_template(field):
        raise NotConvertedError(
            FindingReason("a rule of mutation", "its field is computed", "write one rule for each field")
        )
    found: dict[str, Any] = {"field": field, **convert_conditions(rule, known)}
    take_fires(rule)
    type_ = rule.take_text("valueType")
    use = {"int": TemplateUse.NUMBER, "float": TemplateUse.NUMBER, "bool": TemplateUse.BOOLEAN}.get(
        type_ or "", TemplateUse.VALUE
    )
    key = "override" if "override" in rule else "default"
    if key == "override" and "default" in rule:
        rule.take("default")
        rule.reject_field("default", "a default beside an override", "a Katalog uses the override", "remove it")
    if key not in rule:
        raise NotConvertedError(FindingReason("a rule of mutation", "it has neither default nor override", "remove it"))
    value = rule.take(key)
    made = convert_tree(rule, value, rule.build_path(key), use, known)
    if made is MISSING:
        raise NotConvertedError
    found[key] = made
    if type_ in TYPES:
        found["type"] = TYPES[type_]
    elif type_ is not None:
        rule.reject_field(
            "valueType", "the type of a value", f"unknown type {type_[:40]!r}", "use int, float, bool, string"
        )
    elif not isinstance(value, str):
        rule.add_note(key, "the value keeps its type; a Katalog would write a string")
    return found


def _convert_validation(rule: KatalogFields, known: KnownFields) -> dict[str, Any]:
    made = {"field": convert_field(rule, known), **convert_operator(rule, known)}
    take_fires(rule)
    message = convert_text_field(rule, "message", TemplateUse.TEXT, known)
    if message not in (None, MISSING):
        made["message"] = message
    if (action := rule.take_text("action")) not in (None, "deny"):
        made["action"] = action
    return made | convert_conditions(rule, known)


def _build_rule_reason(word: str) -> FindingReason:
    return FindingReason(f"a rule of {word}", "a required part has no counterpart", "see its findings")
