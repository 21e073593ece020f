"""The delays between attempts."""

from __future__ import annotations

from konverge.clock import SeededEntropy
from konverge_box._internal.calls.retry_policy import NO_RETRIES, RetryPolicy


def test_without_a_word_about_it_nothing_is_tried_again() -> None:
    assert NO_RETRIES.compute_delay(1, None, SeededEntropy()) is None


def test_pauses_grow_by_the_factor_up_to_the_longest_and_end_with_the_attempts() -> None:
    pauses = RetryPolicy(attempts=5, initial_seconds=1.0, max_seconds=5.0, factor=2.0)
    found = [pauses.compute_delay(failures, None, SeededEntropy()) for failures in range(1, 6)]
    for pause, longest in zip(found[:4], (1.0, 2.0, 4.0, 5.0), strict=True):
        assert pause is not None
        assert 0.75 * longest <= pause <= longest
    assert found[4] is None


def test_what_failed_together_does_not_come_back_together() -> None:
    pauses = {RetryPolicy(attempts=2).compute_delay(1, None, SeededEntropy(seed)) for seed in range(10)}
    assert len(pauses) == 10


def test_a_server_is_not_asked_sooner_than_it_wants_but_cannot_hold_us_longer_than_the_longest_pause() -> None:
    pauses = RetryPolicy(attempts=5, initial_seconds=1.0, max_seconds=30.0)
    assert pauses.compute_delay(1, 20.0, SeededEntropy()) == 20.0
    assert pauses.compute_delay(1, 1e9, SeededEntropy()) == 30.0
