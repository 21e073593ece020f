"""The exported metrics, their names, and the changes that each event causes."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from konverge._internal.runtime import Controller, Result
from konverge._internal.runtime.controller_observer import ControllerObserver, ReconcileOutcome
from konverge._internal.runtime.observability import Metrics, RuntimeSources
from konverge._internal.runtime.observability.sources import ObservedController
from konverge._internal.runtime.reconciliation import Reconciliation, current_reconciliation
from konverge._internal.runtime.webhooks import WebhookObserver
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import ConfigurationError, TerminalError
from konverge.kube import ObjectKey
from tests.runtime.observability import fake_sources
from tests.runtime.observability.exposition_parsing import read_sample, scrape

pytestmark = pytest.mark.anyio

KEY = ObjectKey("default", "web")

# controller-runtime at 86a0d40e (August 2026): the type of each family, its labels, and the bounds of its histogram.
SHORT = "1e-08 1e-07 1e-06 9.999999999999999e-06 9.999999999999999e-05 0.001 0.01 0.1 1 10 100 1000 +Inf"
RECONCILE = (
    "0.005 0.01 0.025 0.05 0.1 0.15 0.2 0.25 0.3 0.35 0.4 0.45 0.5 0.6 0.7 0.8 0.9 1 1.25 1.5 1.75 2 2.5 3 3.5 4 4.5 "
    "5 6 7 8 9 10 15 20 25 30 40 50 60 +Inf"
)
REQUEST = "0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf"
BYTES = "64 256 512 1024 4096 16384 65536 262144 1.048576e+06 4.194304e+06 1.6777216e+07 +Inf"
CONTROLLER_RUNTIME = {
    "controller_runtime_reconcile_total": ("counter", "controller result", ""),
    "controller_runtime_reconcile_errors_total": ("counter", "controller", ""),
    "controller_runtime_terminal_reconcile_errors_total": ("counter", "controller", ""),
    "controller_runtime_reconcile_panics_total": ("counter", "controller", ""),
    "controller_runtime_reconcile_timeouts_total": ("counter", "controller", ""),
    "controller_runtime_reconcile_time_seconds": ("histogram", "controller", RECONCILE),
    "controller_runtime_max_concurrent_reconciles": ("gauge", "controller", ""),
    "controller_runtime_active_workers": ("gauge", "controller", ""),
    "controller_runtime_webhook_latency_seconds": ("histogram", "webhook", SHORT),
    "controller_runtime_webhook_requests_total": ("counter", "code webhook", ""),
    "controller_runtime_webhook_requests_in_flight": ("gauge", "webhook", ""),
    "workqueue_depth": ("gauge", "controller name priority", ""),
    "workqueue_adds_total": ("counter", "controller name", ""),
    "workqueue_queue_duration_seconds": ("histogram", "controller name", SHORT),
    "workqueue_work_duration_seconds": ("histogram", "controller name", SHORT),
    "workqueue_unfinished_work_seconds": ("gauge", "controller name", ""),
    "workqueue_longest_running_processor_seconds": ("gauge", "controller name", ""),
    "workqueue_retries_total": ("counter", "controller name", ""),
    "rest_client_requests_total": ("counter", "code host method", ""),
    "rest_client_request_duration_seconds": ("histogram", "host verb", REQUEST),
    "rest_client_request_size_bytes": ("histogram", "host verb", BYTES),
    "rest_client_response_size_bytes": ("histogram", "host verb", BYTES),
    "rest_client_request_retries_total": ("counter", "code host verb", ""),
    "leader_election_master_status": ("gauge", "name", ""),
    "certwatcher_read_certificate_total": ("counter", "", ""),
    "certwatcher_read_certificate_errors_total": ("counter", "", ""),
}


def busy() -> Metrics:
    """Metrics with a series in every family."""
    metrics = Metrics(
        RuntimeSources(
            controllers=lambda: [fake_sources.FakeController()],
            informers=lambda: [fake_sources.FakeInformer()],
            leases=lambda: {"webapp-leader": True},
        )
    )
    metrics.observe_controller("webapp")
    requests = metrics.observe_requests("127.0.0.1:6443")
    requests.on_request("GET", "/api", code="200", seconds=0.1, sent_bytes=0, received_bytes=900)
    requests.on_retry("GET", code="503")
    metrics.webhooks.add_webhook("/validate")
    return metrics


async def test_names_types_labels_and_buckets_are_those_of_controller_runtime() -> None:
    families = scrape(busy())

    found = {
        name: (
            family.type,
            " ".join(sorted({label for sample in family.samples for label in sample.labels} - {"le"})),
            " ".join(dict.fromkeys(sample.labels["le"] for sample in family.samples if "le" in sample.labels)),
        )
        for name, family in families.items()
        if name in CONTROLLER_RUNTIME
    }

    assert found == CONTROLLER_RUNTIME


async def test_whatever_is_not_the_fields_is_named_as_ours() -> None:
    others = set(scrape(busy())) - set(CONTROLLER_RUNTIME)

    assert {name.partition("_")[0] for name in others} == {"konverge", "process", "python"}


async def test_a_series_for_each_result_exists_before_the_first_pass() -> None:
    metrics = Metrics()

    metrics.observe_controller("webapp")

    results = {
        sample.labels["result"]: sample.value
        for sample in scrape(metrics)["controller_runtime_reconcile_total"].samples
    }
    assert results == {"success": 0, "error": 0, "requeue": 0, "requeue_after": 0}
    assert read_sample(metrics, "controller_runtime_reconcile_panics_total", controller="webapp") == 0
    assert read_sample(metrics, "konverge_breaker_opened_total", controller="webapp") == 0


@pytest.mark.parametrize(
    ("outcome", "result", "errors", "terminal", "timeouts"),
    [
        (ReconcileOutcome.SUCCESS, "success", 0, 0, 0),
        (ReconcileOutcome.REQUEUE_AFTER, "requeue_after", 0, 0, 0),
        (ReconcileOutcome.ERROR, "error", 1, 0, 0),
        (ReconcileOutcome.TERMINAL, "error", 1, 1, 0),
        (ReconcileOutcome.TIMEOUT, "error", 1, 0, 1),
        (ReconcileOutcome.ABANDONED, "requeue", 0, 0, 0),
    ],
)
async def test_each_outcome_counts_as_controller_runtime_counts_it(
    outcome: ReconcileOutcome, result: str, errors: int, terminal: int, timeouts: int
) -> None:
    metrics = Metrics()
    observer: ControllerObserver = metrics.observe_controller("webapp")

    observer.on_finish(outcome, seconds=2.0)

    label = {"controller": "webapp"}
    assert read_sample(metrics, "controller_runtime_reconcile_total", result=result, **label) == 1
    assert read_sample(metrics, "controller_runtime_reconcile_errors_total", **label) == errors
    assert read_sample(metrics, "controller_runtime_terminal_reconcile_errors_total", **label) == terminal
    assert read_sample(metrics, "controller_runtime_reconcile_timeouts_total", **label) == timeouts
    assert read_sample(metrics, "controller_runtime_reconcile_time_seconds_sum", **label) == 2.0
    assert read_sample(metrics, "controller_runtime_reconcile_time_seconds_bucket", le="1.75", **label) == 0
    assert read_sample(metrics, "controller_runtime_reconcile_time_seconds_bucket", le="2", **label) == 1


async def test_what_is_put_back_for_later_counts_as_a_retry() -> None:
    metrics = Metrics()
    observer = metrics.observe_controller("webapp")

    observer.on_retry()
    observer.on_finish(ReconcileOutcome.ERROR, seconds=0.1)
    observer.on_finish(ReconcileOutcome.REQUEUE_AFTER, seconds=0.1)

    assert read_sample(metrics, "workqueue_retries_total", controller="webapp", name="webapp") == 2


async def test_a_controller_at_work_is_counted_and_read() -> None:
    clock = SimulatedClock()
    metrics = Metrics(clock=clock)
    requests = metrics.observe_requests("server")

    async def reconcile(key: ObjectKey) -> Result | None:
        if key.name == "slow":
            await clock.sleep(30)
        if key.name == "broken":
            raise TerminalError("no")
        if key.name == "writing":
            requests.on_request("PATCH", "/x", code="200", seconds=0.1, sent_bytes=100, received_bytes=100)
            requests.on_request("GET", "/x", code="200", seconds=0.1, sent_bytes=0, received_bytes=100)
        return None

    controller = Controller(
        "webapp", reconcile, clock=clock, entropy=SeededEntropy(), observer=metrics.observe_controller("webapp")
    )
    observed: ObservedController = controller
    metrics.set_sources(RuntimeSources(controllers=lambda: [observed]))
    running = asyncio.create_task(controller.run())
    for name in ("slow", "broken", "writing", "idle"):
        controller.enqueue(ObjectKey("default", name), priority=-100)
    await clock.sleep(5)

    both = {"controller": "webapp", "name": "webapp"}
    assert read_sample(metrics, "controller_runtime_active_workers", controller="webapp") == 1
    assert read_sample(metrics, "controller_runtime_max_concurrent_reconciles", controller="webapp") == 10
    assert read_sample(metrics, "workqueue_longest_running_processor_seconds", **both) == pytest.approx(5)
    assert read_sample(metrics, "workqueue_unfinished_work_seconds", **both) == pytest.approx(5)
    assert read_sample(metrics, "workqueue_adds_total", **both) == 4
    assert read_sample(metrics, "controller_runtime_reconcile_total", controller="webapp", result="success") == 2
    assert read_sample(metrics, "controller_runtime_terminal_reconcile_errors_total", controller="webapp") == 1
    assert read_sample(metrics, "konverge_reconcile_noop_total", controller="webapp") == 2
    assert read_sample(metrics, "konverge_reconcile_requests_sum", controller="webapp") == 2
    assert read_sample(metrics, "konverge_reconcile_writes_sum", controller="webapp") == 1
    controller.stop()
    await running


async def test_passes_that_end_without_a_word_do_not_fill_memory() -> None:
    metrics = Metrics()
    requests = metrics.observe_requests("server")
    before = current_reconciliation.get()
    for number in range(10_100):
        current_reconciliation.set(Reconciliation("webapp", KEY, str(number)))
        requests.on_request("GET", "/x", code="200", seconds=0.1, sent_bytes=0, received_bytes=0)
    current_reconciliation.set(before)

    assert len(metrics._reconciles._costs) == 10_000


async def test_depth_is_split_by_priority() -> None:
    controller = fake_sources.FakeController(queue=fake_sources.FakeQueue({0: 2, -100: 5000}, delayed=3))
    metrics = Metrics(RuntimeSources(controllers=lambda: [controller]))

    both = {"controller": "webapp", "name": "webapp"}
    assert read_sample(metrics, "workqueue_depth", priority="0", **both) == 2
    assert read_sample(metrics, "workqueue_depth", priority="-100", **both) == 5000
    assert read_sample(metrics, "konverge_queue_delayed", **both) == 3


async def test_more_than_25_priorities_become_one_for_good() -> None:
    controller = fake_sources.FakeController()
    metrics = Metrics(RuntimeSources(controllers=lambda: [controller]))
    for priority in range(26):
        controller.queue.waiting = {priority: 1}
        scrape(metrics)

    controller.queue.waiting = {1: 4, 2: 6}

    depth = {sample.labels["priority"]: sample.value for sample in scrape(metrics)["workqueue_depth"].samples}
    assert depth == {"0": 0, "exceeded_cardinality_limit": 10}


async def test_an_informer_is_read_as_it_is() -> None:
    metrics = Metrics(RuntimeSources(informers=lambda: [fake_sources.FakeInformer()]))

    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert read_sample(metrics, "konverge_informer_synced", **kind) == 1
    assert read_sample(metrics, "konverge_informer_age_seconds", **kind) == 3
    assert read_sample(metrics, "konverge_informer_objects", **kind) == 2
    assert read_sample(metrics, "konverge_informer_since_list_seconds", **kind) == 300
    assert read_sample(metrics, "konverge_informer_dropped_objects", **kind) == 5
    assert read_sample(metrics, "konverge_informer_unconfirmed_writes", **kind) == 2
    assert read_sample(metrics, "konverge_informer_own_write_lag_seconds", **kind) == 0.25
    assert read_sample(metrics, "konverge_informer_lists_total", **kind) == 1
    assert read_sample(metrics, "konverge_informer_events_total", **kind) == 40
    assert read_sample(metrics, "konverge_informer_last_resource_version", **kind) == 567890123456789


async def test_of_a_kind_in_two_namespaces_the_worse_state_and_the_sum_of_objects_are_shown() -> None:
    informers = [fake_sources.FakeInformer(), fake_sources.FakeInformer(synced=False, age_seconds=90.0)]
    metrics = Metrics(RuntimeSources(informers=lambda: informers))

    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert read_sample(metrics, "konverge_informer_synced", **kind) == 0
    assert read_sample(metrics, "konverge_informer_age_seconds", **kind) == 90
    assert read_sample(metrics, "konverge_informer_own_write_lag_seconds", **kind) == 0.25
    assert read_sample(metrics, "konverge_informer_objects", **kind) == 4
    assert read_sample(metrics, "konverge_informer_unconfirmed_writes", **kind) == 4


async def test_a_source_that_fails_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(
        RuntimeSources(
            controllers=lambda: [fake_sources.BrokenController("broken"), fake_sources.FakeController("whole")],
            informers=lambda: [fake_sources.FakeInformer()],
        )
    )

    assert read_sample(metrics, "controller_runtime_active_workers", controller="whole") == 0
    assert "konverge_informer_synced" in scrape(metrics)
    assert "BrokenController: reading it for metrics failed" in caplog.text


class _BrokenCollector:
    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("half", "Half of it", value=1)
        raise RuntimeError("no")


class _EmptyWhenDescribed(_BrokenCollector):
    def describe(self) -> list[Metric]:
        return []


async def test_an_authors_own_metrics_come_along() -> None:
    metrics = Metrics()
    orders = Counter("orders_total", "Orders", registry=metrics.registry)

    orders.inc()

    assert read_sample(metrics, "orders_total") == 1
    assert not [name for name in scrape(metrics) if name.endswith("_created")]


@pytest.fixture
def default_counter() -> Iterator[Counter]:
    """A counter in prometheus-client's default registry, where a module of the author declares it."""
    counter = Counter("backups_total", "Backups", ["result"])
    yield counter
    REGISTRY.unregister(counter)


async def test_metrics_of_the_default_registry_are_on_the_same_endpoint(
    default_counter: Counter, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = Metrics(), Metrics()

    default_counter.labels("done").inc(3)

    assert (read_sample(one, "backups_total", result="done"), read_sample(other, "backups_total", result="done")) == (
        3,
        3,
    )
    assert not [name for name in scrape(one) if name.endswith("_created")]
    # The default registry has the process metrics as well; they are exported once.
    assert (await one.render_exposition()).body.count(b"# TYPE process_cpu_seconds_total ") == 1
    assert caplog.text == ""


async def test_a_name_of_the_default_registry_that_is_taken_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    metrics = busy()
    counter = Counter("workqueue_adds_total", "Mine")

    try:
        assert read_sample(metrics, "workqueue_adds_total", controller="webapp", name="webapp") == 0
    finally:
        REGISTRY.unregister(counter)
    assert "metric workqueue_adds: expected one family" in caplog.text


async def test_an_authors_broken_collector_does_not_take_the_rest_away(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    metrics.registry.register(_EmptyWhenDescribed())

    assert "process_cpu_seconds_total" in scrape(metrics)
    assert "a metrics collector failed" in caplog.text


async def test_an_authors_metric_under_a_name_that_is_taken_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    metrics = busy()
    Counter("workqueue_adds_total", "Mine", registry=metrics.registry)

    assert read_sample(metrics, "workqueue_adds_total", controller="webapp", name="webapp") == 0
    assert "metric workqueue_adds: expected one family" in caplog.text


async def test_two_operators_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.observe_controller("webapp").on_add(priority=0)
    other.observe_controller("webapp")

    assert read_sample(one, "workqueue_adds_total", controller="webapp", name="webapp") == 1
    assert read_sample(other, "workqueue_adds_total", controller="webapp", name="webapp") == 0


async def test_label_values_without_end_end_in_one_series() -> None:
    metrics = Metrics()
    requests = metrics.observe_requests("server")
    for code in range(3000):
        requests.on_retry("GET", code=str(code))

    samples = scrape(metrics)["rest_client_request_retries_total"].samples
    assert len(samples) == 2001
    assert sum(sample.value for sample in samples) == 3000


async def test_pauses_of_the_collector_are_counted_while_measuring() -> None:
    metrics = Metrics(clock=SimulatedClock())
    callbacks = list(gc.callbacks)

    async with metrics.measure_process():
        gc.collect()

    assert read_sample(metrics, "konverge_gc_pause_seconds_count", generation="2") == 1
    assert gc.callbacks == callbacks


async def test_a_late_event_loop_is_measured() -> None:
    clock = SimulatedClock()
    metrics = Metrics(clock=clock)
    async with metrics.measure_process():
        await clock.sleep(1.05)

    assert read_sample(metrics, "konverge_event_loop_lag_seconds_count") == 10


async def test_leases_are_exported_with_their_holding() -> None:
    leases = {"webapp-0": True, "webapp-1": False}
    metrics = Metrics(RuntimeSources(leases=lambda: leases))

    assert read_sample(metrics, "leader_election_master_status", name="webapp-0") == 1
    assert read_sample(metrics, "leader_election_master_status", name="webapp-1") == 0


async def test_webhooks_and_resources_are_counted() -> None:
    metrics = Metrics()
    hooks: WebhookObserver = metrics.webhooks
    metrics.webhooks.add_webhook("/validate")

    hooks.on_start("/validate")
    hooks.on_start("/validate")
    hooks.on_finish("/validate", 200, seconds=0.02)
    hooks.on_refusal("BadRequest")
    metrics.resources.record_apply(
        "webapp", owner_kind="WebApp", component="frontend", resource="deployment", kind="Deployment", operation="none"
    )

    assert read_sample(metrics, "controller_runtime_webhook_requests_in_flight", webhook="/validate") == 1
    assert read_sample(metrics, "controller_runtime_webhook_requests_total", webhook="/validate", code="200") == 1
    assert read_sample(metrics, "controller_runtime_webhook_requests_total", webhook="/validate", code="500") == 0
    assert read_sample(metrics, "konverge_webhook_refused_requests_total", reason="BadRequest") == 1
    resource = {"controller": "webapp", "owner_kind": "WebApp", "component": "frontend", "resource": "deployment"}
    assert read_sample(metrics, "konverge_resource_apply_total", kind="Deployment", operation="none", **resource) == 1


async def test_without_the_extra_one_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'konverge\[metrics\]'"):
        Metrics()
