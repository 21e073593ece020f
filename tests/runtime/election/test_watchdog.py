"""When the renewing thread stops renewing, and when it ends the process."""

from konverge.runtime.election.watchdog import Verdict, Watchdog


def test_a_main_loop_that_beats_is_renewed_for() -> None:
    watchdog = Watchdog(0.0, bound=10.0, grace=5.0)
    watchdog.beaten = 95.0
    assert watchdog.judge(100.0) is Verdict.RENEW


def test_one_that_has_been_silent_for_too_long_is_not_and_may_come_back() -> None:
    watchdog = Watchdog(0.0, bound=10.0, grace=5.0)
    assert watchdog.judge(10.0) is Verdict.RENEW
    assert watchdog.judge(10.1) is Verdict.SUSPEND
    watchdog.beaten = 11.0
    assert watchdog.judge(11.0) is Verdict.RENEW


def test_a_loss_that_is_not_heard_within_the_grace_ends_the_process() -> None:
    watchdog = Watchdog(0.0, bound=10.0, grace=5.0)
    watchdog.told(1, 20.0)
    watchdog.told(2, 24.0)
    assert watchdog.judge(25.0) is Verdict.SUSPEND
    assert watchdog.judge(25.1) is Verdict.EXIT


def test_a_loss_that_is_heard_does_not() -> None:
    watchdog = Watchdog(0.0, bound=10.0, grace=5.0)
    watchdog.told(1, 20.0)
    watchdog.heard(1)
    watchdog.beaten = 24.0
    assert watchdog.judge(30.0) is Verdict.RENEW
