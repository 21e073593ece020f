"""The decisions to stop the renewal and to end the process."""

from konverge._internal.runtime.election.main_loop_watchdog import MainLoopWatchdog, WatchdogAction


def test_a_main_loop_that_beats_is_renewed_for() -> None:
    watchdog = MainLoopWatchdog(0.0, bound=10.0, grace=5.0)
    watchdog.beaten = 95.0
    assert watchdog.decide(100.0) is WatchdogAction.RENEW


def test_one_that_has_been_silent_for_too_long_is_not_and_may_come_back() -> None:
    watchdog = MainLoopWatchdog(0.0, bound=10.0, grace=5.0)
    assert watchdog.decide(10.0) is WatchdogAction.RENEW
    assert watchdog.decide(10.1) is WatchdogAction.SUSPEND
    watchdog.beaten = 11.0
    assert watchdog.decide(11.0) is WatchdogAction.RENEW


def test_a_loss_that_is_not_heard_within_the_grace_ends_the_process() -> None:
    watchdog = MainLoopWatchdog(0.0, bound=10.0, grace=5.0)
    watchdog.record_message(1, 20.0)
    watchdog.record_message(2, 24.0)
    assert watchdog.decide(25.0) is WatchdogAction.SUSPEND
    assert watchdog.decide(25.1) is WatchdogAction.EXIT


def test_a_loss_that_is_heard_does_not() -> None:
    watchdog = MainLoopWatchdog(0.0, bound=10.0, grace=5.0)
    watchdog.record_message(1, 20.0)
    watchdog.acknowledge(1)
    watchdog.beaten = 24.0
    assert watchdog.decide(30.0) is WatchdogAction.RENEW
