from __future__ import annotations

import pytest

from konverge.localcluster.players import Fate, ImageRules


@pytest.mark.parametrize(
    ("image", "fate"),
    [
        ("konverge.test/app:1", Fate("ready")),
        ("konverge.test/never-ready", Fate("never-ready")),
        ("konverge.test/never-ready-either:2", Fate("never-ready")),
        ("konverge.test/slow:1", Fate("ready", 3.0)),
        ("other.test/konverge.test/slow", Fate("ready")),
    ],
)
def test_built_in_rules(image: str, fate: Fate) -> None:
    assert ImageRules().fate(image) == fate


def test_the_latest_matching_rule_decides() -> None:
    rules = ImageRules()
    rules.never_ready("registry/*")
    rules.ready_after("registry/web*", 5)

    assert rules.fate("registry/web:1") == Fate("ready", 5)
    assert rules.fate("registry/db:1") == Fate("never-ready")


def test_a_rule_given_again_counts_as_the_latest() -> None:
    rules = ImageRules()
    rules.failing("registry/*")
    rules.ready("registry/web*")
    rules.failing("registry/*")

    assert rules.fate("registry/web:1") == Fate("failing")


def test_a_rule_overrides_the_built_in_ones_until_it_is_forgotten() -> None:
    rules = ImageRules()
    rules.ready("konverge.test/never-ready*")
    overridden = rules.fate("konverge.test/never-ready:1")
    rules.forget("konverge.test/never-ready*")

    assert overridden == Fate("ready")
    assert rules.fate("konverge.test/never-ready:1") == Fate("never-ready")


def test_changes_are_told_until_the_subscription_ends() -> None:
    rules = ImageRules()
    told: list[str] = []
    end = rules.subscribe(lambda: told.append("changed"))
    rules.failing("a")
    rules.forget("unknown")
    rules.forget("a")
    end()
    rules.failing("b")

    assert told == ["changed", "changed"]


def test_negative_seconds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"found -1"):
        ImageRules().ready_after("a", -1)
