"""The editors of lists that are a whole part of their object: rules and subjects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge._internal.mutation.field_editing import copy_json
from konverge.kube import Object
from konverge.mutation import BindingSubjectsEditor, ListEditor, PolicyRulesEditor


def case(name: str, before: Object, edit: Callable[[Any], None], after: Object) -> Any:
    return pytest.param(before, edit, after, id=name)


def edit_list(editor: Callable[[Object], ListEditor], before: Object, edit: Callable[[Any], None]) -> Object:
    """What is there afterwards; the cases share their objects, so each gets a copy."""
    fields: Object = copy_json(before)
    edit(editor(fields))
    return fields


READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
WRITE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["update"]}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("first", {}, lambda e: e.add_rule(READ), {"rules": [READ]}),
        case("over null", {"rules": None}, lambda e: e.add_rule(READ), {"rules": [READ]}),
        case("the same again", {"rules": [READ]}, lambda e: e.add_rule(READ), {"rules": [READ, READ]}),
        case("removed", {"rules": [READ, WRITE]}, lambda e: e.remove_rule_by_index(0), {"rules": [WRITE]}),
        case("last removed", {"rules": [READ]}, lambda e: e.remove_rule_by_index(0), {}),
        case("no such place", {"rules": [READ]}, lambda e: e.remove_rule_by_index(1), {"rules": [READ]}),
        case("no place from the end", {"rules": [READ]}, lambda e: e.remove_rule_by_index(-1), {"rules": [READ]}),
        case("nothing to remove", {}, lambda e: e.remove_rule_by_index(0), {}),
        case("cleared", {"rules": [READ, WRITE]}, lambda e: e.clear(), {}),
        case("nothing to clear", {}, lambda e: e.clear(), {}),
        case(
            "raw",
            {"rules": [READ]},
            lambda e: e.raw()[0]["verbs"].append("list"),
            {"rules": [{**READ, "verbs": ["get", "list"]}]},
        ),
    ],
)
def test_policy_rules(before: Object, edit: Callable[[PolicyRulesEditor], None], after: Object) -> None:
    assert edit_list(PolicyRulesEditor, before, edit) == after


ADA = {"kind": "User", "name": "ada"}
ADA_WITH_GROUP = {"kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"}
WEB = {"kind": "ServiceAccount", "name": "web", "namespace": "a"}
WEB_ELSEWHERE = {"kind": "ServiceAccount", "name": "web", "namespace": "b"}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case("first", {}, lambda e: e.ensure_subject(ADA), {"subjects": [ADA]}),
        case(
            "replaced",
            {"subjects": [ADA, WEB]},
            lambda e: e.ensure_subject(ADA_WITH_GROUP),
            {"subjects": [ADA_WITH_GROUP, WEB]},
        ),
        case(
            "no namespace is an empty one",
            {"subjects": [{**ADA, "namespace": ""}]},
            lambda e: e.ensure_subject(ADA),
            {"subjects": [ADA]},
        ),
        case(
            "of another namespace",
            {"subjects": [WEB]},
            lambda e: e.ensure_subject(WEB_ELSEWHERE),
            {"subjects": [WEB, WEB_ELSEWHERE]},
        ),
        case(
            "of another kind",
            {"subjects": [ADA]},
            lambda e: e.ensure_subject({"kind": "Group", "name": "ada"}),
            {"subjects": [ADA, {"kind": "Group", "name": "ada"}]},
        ),
        case("removed", {"subjects": [ADA, WEB]}, lambda e: e.remove_subject("User", "ada"), {"subjects": [WEB]}),
        case(
            "kept: of another namespace",
            {"subjects": [WEB]},
            lambda e: e.remove_subject("ServiceAccount", "web", "b"),
            {"subjects": [WEB]},
        ),
        case(
            "service account",
            {"subjects": [WEB]},
            lambda e: e.ensure_service_account("web", "b"),
            {"subjects": [WEB, WEB_ELSEWHERE]},
        ),
        case(
            "service account present",
            {"subjects": [WEB]},
            lambda e: e.ensure_service_account("web", "a"),
            {"subjects": [WEB]},
        ),
        case("service account removed", {"subjects": [WEB]}, lambda e: e.remove_service_account("web", "a"), {}),
        case("nothing to remove", {}, lambda e: e.remove_service_account("web", "a"), {}),
    ],
)
def test_binding_subjects(before: Object, edit: Callable[[BindingSubjectsEditor], None], after: Object) -> None:
    assert edit_list(BindingSubjectsEditor, before, edit) == after


def test_a_subject_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="name: expected a non-empty string"):
        BindingSubjectsEditor({}).ensure_subject({"kind": "User"})


def test_a_list_that_is_none_is_told() -> None:
    with pytest.raises(TypeError, match="rules: expected a list, found dict"):
        PolicyRulesEditor({"rules": {}}).add_rule(READ)
