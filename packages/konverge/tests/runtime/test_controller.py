import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from konverge._internal.runtime.controller import Controller, PartialFailureError, Result
from konverge._internal.runtime.reconciliation import ReconciliationFilter
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import (
    ConnectionFailedError,
    ForbiddenError,
    KindNotServedError,
    KonvergeError,
    NoPermitError,
    ReconcileError,
    TerminalError,
)
from konverge.kube import ObjectKey

pytestmark = pytest.mark.anyio

CLOCK = SimulatedClock()
A, B, C = (ObjectKey("default", name) for name in "abc")


@asynccontextmanager
async def running(
    reconcile: Callable[[ObjectKey], Awaitable[Result | None]],
    workers: int = 10,
    timeout: timedelta = timedelta(minutes=2),
) -> AsyncIterator[Controller]:
    controller = Controller(
        "webapp", reconcile, clock=CLOCK, entropy=SeededEntropy(1), workers=workers, timeout=timeout
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(controller.run())
        try:
            yield controller
        finally:
            controller.stop()


class Recorder:
    """A reconcile function that records its runs, takes a given time, and may fail."""

    def __init__(self, seconds: float = 0.0, error: Exception | None = None, result: Result | None = None) -> None:
        self.runs: list[tuple[float, str]] = []
        self.most_at_once = 0
        self.error = error
        self.result = result
        self._seconds = seconds
        self._under_way = 0

    async def __call__(self, key: ObjectKey) -> Result | None:
        self.runs.append((CLOCK.monotonic(), key.name))
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            await CLOCK.sleep(self._seconds)
        finally:
            self._under_way -= 1
        if self.error is not None:
            raise self.error
        return self.result


async def test_a_woken_key_is_reconciled_at_once() -> None:
    recorder = Recorder()
    async with running(recorder) as controller:
        await CLOCK.sleep(5)
        controller.enqueue(A)
        await CLOCK.sleep(5)

    assert recorder.runs == [(5.0, "a")]


async def test_no_more_keys_at_once_than_workers() -> None:
    recorder = Recorder(seconds=1)
    async with running(recorder, workers=2) as controller:
        for key in (A, B, C):
            controller.enqueue(key)
        await CLOCK.sleep(10)

    assert recorder.runs == [(0.0, "a"), (0.0, "b"), (1.0, "c")]
    assert recorder.most_at_once == 2


async def test_events_during_a_reconcile_cause_exactly_one_more() -> None:
    recorder = Recorder(seconds=2)
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(1)
        controller.enqueue(A)
        controller.enqueue(A)
        await CLOCK.sleep(10)

    assert recorder.runs == [(0.0, "a"), (2.0, "a")]


async def test_a_reconcile_can_request_another_one_later() -> None:
    recorder = Recorder(result=Result(requeue_after=timedelta(seconds=30)))
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(70)

    assert [round(moment) for moment, _ in recorder.runs] == [0, 30, 60]


async def test_a_failing_key_backs_off_while_others_proceed() -> None:
    good = Recorder()
    bad = Recorder(error=RuntimeError("boom"))
    async with running(lambda key: (bad if key == A else good)(key)) as controller:
        controller.enqueue(A)
        for second in range(10):
            controller.enqueue(B, reason=f"change {second}")
            await CLOCK.sleep(1)

    assert len(good.runs) == 10
    assert 9 <= len(bad.runs) <= 12, "10 s hold about ten doublings from 5 ms"


async def test_a_failure_is_logged_once_with_its_pass(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(error=RuntimeError("boom"))
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(0.001)

    (record,) = caplog.records
    assert "webapp default/a: reconcile failed (in a row: 1)" in record.getMessage()
    assert record.exc_info is not None, "an unexpected error is logged with its traceback"
    assert record.__dict__["controller"] == "webapp"
    assert record.__dict__["object"] == "default/a"
    assert len(record.__dict__["reconcile_id"]) == 36


def authors_mistake() -> ReconcileError:
    error = ReconcileError("failed to extract data from resource v1/ConfigMap/default/a: KeyError: 'endpoint'")
    error.__cause__ = KeyError("endpoint")
    return error


def clusters_answer() -> ReconcileError:
    error = ReconcileError("failed to apply resource v1/ConfigMap/default/a: connection refused")
    error.__cause__ = ConnectionFailedError("connection refused")
    error.__cause__.__cause__ = OSError("connection refused")
    return error


@pytest.mark.parametrize(
    ("error", "is_traced"),
    [
        pytest.param(authors_mistake(), True, id="of the author's code"),
        pytest.param(clusters_answer(), False, id="of the cluster"),
        pytest.param(ReconcileError("a sentence that says it all"), False, id="of konverge"),
        pytest.param(ExceptionGroup("two", [clusters_answer(), clusters_answer()]), False, id="of the cluster, twice"),
        pytest.param(ExceptionGroup("two", [clusters_answer(), authors_mistake()]), True, id="one of two"),
    ],
)
async def test_a_traceback_is_for_mistakes_in_the_authors_code(
    error: Exception, is_traced: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(Recorder(error=error)) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(0.001)

    (record,) = caplog.records
    assert (record.exc_info is not None) is is_traced


async def test_a_failure_that_goes_on_is_traced_once(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Recorder(error=RuntimeError("boom"))) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(1)

    assert len(caplog.records) > 3
    assert [record.exc_info is not None for record in caplog.records].count(True) == 1


async def test_a_terminal_error_is_not_tried_again_before_the_next_change() -> None:
    recorder = Recorder(error=ExceptionGroup("two", [TerminalError("no use"), TerminalError("none at all")]))
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(3600)
        controller.enqueue(A)
        await CLOCK.sleep(3600)

    assert [moment for moment, _ in recorder.runs] == [0.0, 3600.0]


async def test_a_terminal_failure_can_request_another_reconcile_later() -> None:
    recorder = Recorder(error=PartialFailureError(TerminalError("no use"), timedelta(minutes=1)))
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(90)

    assert [moment for moment, _ in recorder.runs] == [0.0, 60.0]


async def test_a_reconcile_beyond_its_time_limit_is_cancelled_and_backs_off(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(seconds=100)
    async with running(recorder, timeout=timedelta(seconds=10)) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(10.1)

    assert len(recorder.runs) == 2
    assert "the reconcile took longer than 10 s" in caplog.text


async def test_a_timeout_of_the_author_is_not_mistaken_for_the_deadline(caplog: pytest.LogCaptureFixture) -> None:
    async with running(Recorder(error=TimeoutError("the database"))) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(0.001)

    assert "the database" in caplog.text


async def test_awaiting_something_that_was_cancelled_is_a_failure_like_any_other() -> None:
    runs = []

    async def reconcile(key: ObjectKey) -> None:
        runs.append(key)
        task = asyncio.create_task(CLOCK.sleep(1))
        task.cancel()
        await task

    async with running(reconcile) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(1)

    assert len(runs) > 1


async def test_a_reconcile_that_cancels_its_own_task_is_an_ordinary_failure(caplog: pytest.LogCaptureFixture) -> None:
    runs = []

    async def reconcile(key: ObjectKey) -> None:
        runs.append(key)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await CLOCK.sleep(1)

    async with running(reconcile, workers=1) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(1)

    assert len(runs) > 1
    assert "the reconcile cancelled its own task" in caplog.text


@pytest.mark.parametrize("error", [ValueError("odd"), KonvergeError("odd")])
async def test_an_error_that_is_its_own_cause_is_a_failure_like_any_other(error: Exception) -> None:
    runs = []

    async def reconcile(key: ObjectKey) -> None:
        runs.append(key)
        raise error from error

    async with running(reconcile) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(1)

    assert len(runs) > 1


async def test_stop_lets_running_reconciles_end_and_starts_no_other() -> None:
    recorder = Recorder(seconds=5)
    async with running(recorder, workers=1) as controller:
        controller.enqueue(A)
        controller.enqueue(B)
        await CLOCK.sleep(1)

    assert CLOCK.monotonic() == 5.0
    assert recorder.runs == [(0.0, "a")]


async def test_cancelling_the_controller_cancels_its_reconciles(caplog: pytest.LogCaptureFixture) -> None:
    let_go = []

    async def reconcile(key: ObjectKey) -> None:
        try:
            await CLOCK.sleep(1000)
        finally:
            let_go.append(key)

    controller = Controller("webapp", reconcile, clock=CLOCK, entropy=SeededEntropy(1))
    controller.enqueue(A)
    task = asyncio.create_task(controller.run())
    await CLOCK.sleep(1)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert let_go == [A]
    assert CLOCK.monotonic() == 1.0
    assert not caplog.text  # no reconcile has failed


async def test_every_record_of_a_reconcile_has_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    caplog.handler.addFilter(ReconciliationFilter())

    async def reconcile(key: ObjectKey) -> None:
        logging.getLogger("author").info("within")

    async with running(reconcile) as controller:
        logging.getLogger("author").info("outside")
        controller.enqueue(A)
        await CLOCK.sleep(1)

    fields = {record.getMessage(): record.__dict__["object"] for record in caplog.records}
    assert fields == {"outside": "", "within": "default/a"}


async def test_a_reconcile_without_permit_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    error = ReconcileError("config/ConfigMap: not written")
    error.__cause__ = NoPermitError("PATCH /x was not sent")
    recorder = Recorder(error=error)
    async with running(recorder) as controller:
        with caplog.at_level(logging.INFO):
            controller.enqueue(A)
            await CLOCK.sleep(60)

    assert len(recorder.runs) == 1
    assert [record.levelname for record in caplog.records] == ["INFO"]


async def test_an_abandoned_reconcile_frees_its_key() -> None:
    recorder = Recorder(seconds=10)
    async with running(recorder) as controller:
        controller.enqueue(A)
        controller.enqueue(B)
        await CLOCK.sleep(1)
        controller.abandon(lambda key: key == A)
        await controller.wait_until_idle(lambda key: key == A)
        assert CLOCK.monotonic() < 2
        controller.enqueue(A)
        await CLOCK.sleep(1)

    assert [name for _, name in recorder.runs] == ["a", "b", "a"]


async def test_a_key_that_never_comes_to_rest_is_slowed_down(caplog: pytest.LogCaptureFixture) -> None:
    runs = []

    async def reconcile(key: ObjectKey) -> None:
        runs.append(CLOCK.monotonic())
        await CLOCK.sleep(0.01)
        controller.enqueue(key, reason="ConfigMap default/a changed")

    async with running(reconcile) as controller:
        controller.enqueue(A, reason="it came")
        await CLOCK.sleep(130)

    assert len([moment for moment in runs if moment < 10]) == 100
    assert len([moment for moment in runs if moment >= 10]) in (3, 4, 5), "one in half a minute"
    (line,) = [record.getMessage() for record in caplog.records]
    assert "webapp default/a: 100 reconciles in 0.99 s" in line
    assert "99 of them because: ConfigMap default/a changed" in line


async def test_an_edit_by_a_user_does_not_wait_for_the_end_of_a_loop() -> None:
    runs = []

    async def reconcile(key: ObjectKey) -> None:
        runs.append(CLOCK.monotonic())
        await CLOCK.sleep(0.01)
        controller.enqueue(key, reason="an own write", is_edit=True)

    async with running(reconcile) as controller:
        controller.enqueue(A, reason="it came")
        await CLOCK.sleep(10)
        before = len(runs)
        controller.enqueue(A, reason="a user edited it", is_edit=True)
        await CLOCK.sleep(1)

    assert (before, len(runs)) == (100, 101), "one for the edit, and none for what that one wrote"


async def test_a_frequent_requeue_after_is_not_slowed_down() -> None:
    recorder = Recorder(result=Result(requeue_after=timedelta(seconds=0.1)))
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(60)

    assert len(recorder.runs) >= 590


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    "error",
    [_Unreadable(), BaseExceptionGroup("both", [ValueError("a"), GeneratorExit()]), SystemExit(3), KonvergeError("")],
    ids=["no text", "a group", "an exit", "an empty one"],
)
async def test_an_exception_of_a_reconcile_affects_no_other_key(error: BaseException) -> None:
    good = Recorder()

    async def reconcile(key: ObjectKey) -> Result | None:
        if key == A:
            raise error
        return await good(key)

    async with running(reconcile) as controller:
        controller.enqueue(A)
        controller.enqueue(B)
        await CLOCK.sleep(1)
        controller.enqueue(B)
        await CLOCK.sleep(1)

    assert len(good.runs) == 2


@pytest.mark.parametrize("odd", [True, "ok", 5, timedelta(seconds=1)])
async def test_a_result_of_a_wrong_type_fails_the_reconcile(odd: object, caplog: pytest.LogCaptureFixture) -> None:
    async def reconcile(key: ObjectKey) -> Result | None:
        return odd  # type: ignore[return-value]  # the mistake

    async with running(reconcile) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(0.001)

    assert f"returned a {type(odd).__name__}: expected None or a konverge.Result" in caplog.text


def test_a_result_rejects_invalid_arguments() -> None:
    with pytest.raises(TypeError, match="expected a timedelta or None, found int"):
        Result(5)  # type: ignore[arg-type]  # the mistake
    with pytest.raises(TypeError, match="priority: expected an int, found str"):
        Result(priority="high")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(ValueError, match="zero or a positive time"):
        Result(timedelta(seconds=-1))


async def test_an_endless_immediate_requeue_is_slowed_down(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(seconds=0.001, result=Result(requeue_after=timedelta(0)))
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(10)

    assert len(recorder.runs) <= 101
    assert "because: its own requeue_after of 0 s" in caplog.text


async def test_a_reconcile_that_is_abandoned_before_its_first_step_frees_its_key() -> None:
    recorder = Recorder(seconds=1)
    loop = asyncio.get_running_loop()
    async with running(recorder, workers=1) as controller:
        await CLOCK.sleep(1)
        controller.enqueue(A)
        # Queued behind the controller's own step: the task is created and has not begun.
        loop.call_soon(controller.abandon, lambda key: True)
        await CLOCK.sleep(5)
        assert controller.queue.running == 0
        controller.enqueue(A)
        controller.enqueue(B)
        await CLOCK.sleep(5)

    assert {name for _, name in recorder.runs} == {"a", "b"}


async def test_a_reconcile_that_is_abandoned_again_while_it_cleans_up_frees_its_key() -> None:
    async def reconcile(key: ObjectKey) -> None:
        try:
            await CLOCK.sleep(100)
        finally:
            await CLOCK.sleep(1)

    async with running(reconcile, workers=1) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(1)
        controller.abandon(lambda key: True)
        await CLOCK.sleep(0.5)
        controller.abandon(lambda key: True)
        await CLOCK.sleep(10)

        assert controller.queue.running == 0


async def test_events_do_not_make_the_back_off_grow() -> None:
    recorder = Recorder(error=RuntimeError("boom"))
    async with running(recorder) as controller:
        for number in range(22):
            controller.enqueue(A, reason=f"change {number}", is_own=True)
            await CLOCK.sleep(0.6 / 22)
        runs = len(recorder.runs)
        await CLOCK.sleep(1.5)

    assert runs >= 22
    assert len(recorder.runs) > runs, "the back-offs that fit into 0.6 s are followed by one of 1.3 s at most"


async def test_a_change_from_outside_resets_the_back_off_and_an_own_one_does_not() -> None:
    recorder = Recorder(error=RuntimeError("boom"))
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(1000)
        recorder.runs.clear()
        controller.enqueue(A, reason="a status that the reconcile wrote", is_own=True)
        await CLOCK.sleep(1)
        after_an_own_change = len(recorder.runs)
        controller.enqueue(A, reason="Secret default/a changed")
        await CLOCK.sleep(1)

    assert after_an_own_change == 1
    assert len(recorder.runs) >= 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ForbiddenError("exceeded quota: small, requested: count/configmaps=1"), id="a refusal"),
        pytest.param(ConnectionFailedError("no answer"), id="no answer"),
        pytest.param(KindNotServedError("the server does not serve demo.dev/v1/Widget"), id="a kind that is absent"),
        pytest.param(ExceptionGroup("several", [ValueError("odd"), ForbiddenError("no")]), id="one of several"),
    ],
)
async def test_what_the_cluster_refuses_is_tried_again_within_half_a_minute(error: Exception) -> None:
    recorder = Recorder(error=error)
    async with running(recorder) as controller:
        controller.enqueue(A)
        await CLOCK.sleep(3600)
        recorder.error = None
        lifted = CLOCK.monotonic()
        await CLOCK.sleep(31)

    (tried_again,) = [moment for moment, _ in recorder.runs if moment > lifted]
    assert tried_again - lifted <= 30
    assert len(recorder.runs) < 3600 / 15 + 20, "an hour of refusals is no flood"
