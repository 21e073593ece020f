from datetime import timedelta

from konverge._internal.runtime.breaker import Breaker, BreakerOptions

OPTIONS = BreakerOptions(burst=10, refill=timedelta(seconds=1), probe=timedelta(seconds=30), calm=timedelta(seconds=60))


def spend(breaker: Breaker[str], key: str, passes: int, now: float, source: str = "ConfigMap a changed") -> None:
    for _ in range(passes):
        breaker.record_start(key, now, source)


def test_a_burst_that_comes_to_rest_is_never_slowed_down() -> None:
    breaker = Breaker[str](OPTIONS)
    spend(breaker, "a", 9, now=0.0)

    assert breaker.compute_delay("a", 0.0) == 0.0


def test_the_opening_names_the_noisiest_source() -> None:
    breaker = Breaker[str](OPTIONS)
    spend(breaker, "a", 3, now=0.0, source="Service a changed")
    spend(breaker, "a", 6, now=2.0)
    opening = breaker.record_start("a", 2.0, "ConfigMap a changed")
    while opening is None:
        opening = breaker.record_start("a", 2.0, "ConfigMap a changed")

    assert opening.source == "ConfigMap a changed"
    assert opening.share == opening.reconciles - 3
    assert opening.seconds == 2.0


def test_an_open_breaker_is_reported_once_and_slows_down_only_its_key() -> None:
    breaker = Breaker[str](OPTIONS)
    spend(breaker, "a", 10, now=0.0)

    assert breaker.record_start("a", 0.0, "again") is None
    assert breaker.compute_delay("a", 0.0) == 30.0
    assert breaker.compute_delay("b", 0.0) == 0.0


def test_it_closes_when_nothing_has_called_for_the_key_for_a_while() -> None:
    breaker = Breaker[str](OPTIONS)
    spend(breaker, "a", 10, now=0.0)

    assert breaker.compute_delay("a", 59.0) == 30.0
    assert breaker.compute_delay("a", 118.0) == 30.0
    assert breaker.compute_delay("a", 178.0) == 0.0
    assert breaker.record_start("a", 178.0, "a person") is None, "and starts with a full bucket"


def test_probes_of_a_loop_that_goes_on_do_not_close_it() -> None:
    breaker = Breaker[str](OPTIONS)
    spend(breaker, "a", 10, now=0.0)
    now = 0.0
    for _ in range(100):
        delay = breaker.compute_delay("a", now)
        assert delay == 30.0
        now += delay
        assert breaker.record_start("a", now, "loop") is None


def test_an_edit_passes_an_open_breaker_at_once_but_a_loop_of_edits_does_not() -> None:
    breaker = Breaker[str](OPTIONS)
    spend(breaker, "a", 10, now=0.0)

    delays = [breaker.compute_delay("a", now, is_edit=True) for now in (1.0, 2.0, 5.9, 6.0, 7.0)]

    assert delays == [0.0, 30.0, 30.0, 0.0, 30.0]
    assert breaker.compute_delay("a", 20.0) == 30.0, "what is no edit waits as ever"


def test_a_slow_and_steady_key_is_left_alone() -> None:
    breaker = Breaker[str](OPTIONS)
    for now in range(1000):
        assert breaker.record_start("a", float(now), "every second") is None


def test_keys_at_rest_cost_no_memory() -> None:
    breaker = Breaker[str](OPTIONS)
    for number in range(10_000):
        breaker.record_start(f"key-{number}", float(number), "once")

    assert len(breaker) < 2_100
