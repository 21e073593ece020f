from __future__ import annotations

import pytest

from konverge_cluster._internal.embedded.controllers import ContainerBehavior, ImageRules


@pytest.mark.parametrize(
    ("image", "fate"),
    [
        ("konverge.test/app:1", ContainerBehavior("ready")),
        ("konverge.test/never-ready", ContainerBehavior("never-ready")),
        ("konverge.test/never-ready-either:2", ContainerBehavior("never-ready")),
        ("konverge.test/slow:1", ContainerBehavior("ready", 3.0)),
        ("other.test/konverge.test/slow", ContainerBehavior("ready")),
    ],
)
def test_built_in_rules(image: str, fate: ContainerBehavior) -> None:
    assert ImageRules().behavior_for(image) == fate


def test_the_latest_matching_rule_decides() -> None:
    rules = ImageRules()
    rules.never_ready("registry/*")
    rules.ready_after("registry/web*", 5)

    assert rules.behavior_for("registry/web:1") == ContainerBehavior("ready", 5)
    assert rules.behavior_for("registry/db:1") == ContainerBehavior("never-ready")


def test_a_rule_given_again_counts_as_the_latest() -> None:
    rules = ImageRules()
    rules.failing("registry/*")
    rules.ready("registry/web*")
    rules.failing("registry/*")

    assert rules.behavior_for("registry/web:1") == ContainerBehavior("failing")


def test_a_rule_overrides_the_built_in_ones_until_it_is_forgotten() -> None:
    rules = ImageRules()
    rules.ready("konverge.test/never-ready*")
    overridden = rules.behavior_for("konverge.test/never-ready:1")
    rules.forget("konverge.test/never-ready*")

    assert overridden == ContainerBehavior("ready")
    assert rules.behavior_for("konverge.test/never-ready:1") == ContainerBehavior("never-ready")


def test_changes_are_told_until_the_subscription_ends() -> None:
    rules = ImageRules()
    notifications: list[str] = []
    end = rules.subscribe(lambda: notifications.append("changed"))
    rules.failing("a")
    rules.forget("unknown")
    rules.forget("a")
    end()
    rules.failing("b")

    assert notifications == ["changed", "changed"]


def test_negative_seconds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"found -1"):
        ImageRules().ready_after("a", -1)
