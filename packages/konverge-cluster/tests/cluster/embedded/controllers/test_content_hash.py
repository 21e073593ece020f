from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from konverge_cluster._internal.embedded.controllers.content_hash import hash_content


def test_the_order_of_keys_does_not_count() -> None:
    assert hash_content({"a": 1, "b": [1, 2]}) == hash_content({"b": [1, 2], "a": 1})


def test_other_content_has_another_hash() -> None:
    assert hash_content({"image": "app:1"}) != hash_content({"image": "app:2"})


def test_a_collision_moves_on_to_another_hash() -> None:
    assert len({hash_content({}, collisions) for collisions in range(50)}) == 50


@given(st.dictionaries(st.text(), st.integers() | st.text()))
def test_a_hash_fits_into_a_name(content: dict[str, object]) -> None:
    found = hash_content(content)

    assert 1 <= len(found) <= 10
    assert set(found) <= set("bcdfghjklmnpqrstvwxz2456789")
