from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.kube.selectors import FieldSelector, LabelSelector, SelectorSyntaxError

LABELS = {"app": "web", "tier": "front", "weight": "7"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("other!=web", True),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app in (db, web)", True),
        ("app notin (db)", True),
        ("app notin (web)", False),
        ("other notin (web)", True),
        ("app", True),
        ("other", False),
        ("!other", True),
        ("!app", False),
        ("weight>6", True),
        ("weight>7", False),
        ("weight<8", True),
        ("app>1", False),
        ("other<1", False),
        ("app=", False),
        ("other in ()", False),
    ],
)
def test_a_label_selector_matches(text: str, matches: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a ~ b", "unable to parse requirement: found '~', expected: in, notin, =, ==, !=, gt, lt"),
        ("a !b", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
            "the value must be an integer",
        ),
    ],
)
def test_what_is_no_label_selector_is_refused_in_the_servers_words(text: str, message: str) -> None:
    with pytest.raises(SelectorSyntaxError) as caught:
        LabelSelector.parse(text)

    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["-a=b", "a=b+", "a/b/c"])
def test_keys_and_values_are_held_to_the_rules_of_labels(text: str) -> None:
    with pytest.raises(SelectorSyntaxError, match="Invalid value"):
        LabelSelector.parse(text)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "back"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_selector_of_an_object_matches(selector: dict[str, object], matches: bool) -> None:
    found = LabelSelector.from_object(selector)

    assert found is not None
    assert found.matches(LABELS) is matches


def test_an_absent_selector_is_none_and_an_unknown_operator_an_error() -> None:
    assert LabelSelector.from_object(None) is None
    with pytest.raises(SelectorSyntaxError, match='"Like" is not a valid label selector operator'):
        LabelSelector.from_object({"matchExpressions": [{"key": "app", "operator": "Like"}]})


NAMES = st.text("abcxyz", min_size=1, max_size=3)
TEXTS = st.lists(
    st.one_of(
        st.builds("{}={}".format, NAMES, NAMES),
        st.builds("{}!={}".format, NAMES, NAMES),
        st.builds("{} in ({},{})".format, NAMES, NAMES, NAMES),
        st.builds("{} notin ({})".format, NAMES, NAMES),
        st.builds("!{}".format, NAMES),
        NAMES,
        st.builds("{}>{}".format, NAMES, st.integers(0, 9)),
    ),
    max_size=4,
).map(",".join)


@given(text=TEXTS, labels=st.dictionaries(NAMES, NAMES | st.integers(0, 9).map(str), max_size=4))
def test_the_text_of_a_selector_means_the_same(text: str, labels: dict[str, str]) -> None:
    selector = LabelSelector.parse(text)

    assert LabelSelector.parse(str(selector)).matches(labels) is selector.matches(labels)


@given(text=st.text("ab=!(),<> in", max_size=12))
def test_any_text_is_a_selector_or_a_syntax_error(text: str) -> None:
    with suppress(SelectorSyntaxError):
        LabelSelector.parse(text).matches(LABELS)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=web", True),
        ("metadata.name==web", True),
        ("metadata.name!=web", False),
        ("metadata.name=web,status.phase=Running", True),
        ("metadata.name=web,status.phase!=Running", False),
        ("status.reason=", True),
        (r"note=a\,b\=c\\d", True),
    ],
)
def test_a_field_selector_matches(text: str, matches: bool) -> None:
    fields = {"metadata.name": "web", "status.phase": "Running", "note": r"a,b=c\d"}

    assert FieldSelector.parse(text).matches(lambda path: fields.get(path, "")) is matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a>b", "invalid selector: 'a>b'; can't understand 'a>b'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_what_is_no_field_selector_is_refused(text: str, message: str) -> None:
    with pytest.raises(SelectorSyntaxError) as caught:
        FieldSelector.parse(text)

    assert str(caught.value) == message
