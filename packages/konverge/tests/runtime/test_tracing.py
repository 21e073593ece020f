"""OpenTelemetry spans of reconciles and requests."""

import sys
from collections.abc import Sequence

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from konverge._internal.client.request_observer import RequestObserver
from konverge._internal.runtime.controller_observer import ReconcileTracer
from konverge._internal.runtime.tracing import SpanRecorder
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError, NotFoundError, ReconcileError
from konverge.kube import ObjectKey

WEB = ObjectKey("default", "web")
PATH = "/apis/apps/v1/namespaces/default/deployments/web"


class Spans:
    """A tracer provider of one test, and the spans that it received."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def ended(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def tracing(spans: Spans) -> SpanRecorder:
    return SpanRecorder(spans.provider)


def report_request(observer: RequestObserver, code: str = "200", seconds: float = 0.25) -> None:
    observer.on_request("PATCH", PATH, code=code, seconds=seconds, sent_bytes=10, received_bytes=20)


def test_a_reconcile_is_a_span_with_its_object(spans: Spans, tracing: ReconcileTracer) -> None:
    with tracing.start_span("webapp", WEB, "id-1"):
        pass

    [span] = spans.ended
    assert span.name == "reconcile webapp"
    assert dict(span.attributes or {}) == {
        "konverge.controller": "webapp",
        "konverge.object": "default/web",
        "konverge.reconcile_id": "id-1",
        "k8s.namespace.name": "default",
        "k8s.object.name": "web",
    }
    assert span.status.status_code is trace.StatusCode.UNSET


def test_a_request_is_a_span_under_that_of_its_pass(spans: Spans, tracing: SpanRecorder) -> None:
    with tracing.start_span("webapp", WEB, "id-1"):
        report_request(tracing)

    request, reconcile = spans.ended
    assert request.parent is not None
    assert reconcile.context is not None
    assert request.parent.span_id == reconcile.context.span_id
    assert request.kind is trace.SpanKind.CLIENT
    assert request.start_time is not None
    assert request.end_time == request.start_time + 250_000_000
    assert dict(request.attributes or {}) == {
        "http.request.method": "PATCH",
        "url.path": PATH,
        "http.request.body.size": 10,
        "http.response.body.size": 20,
        "http.response.status_code": 200,
    }


@pytest.mark.parametrize(("code", "error_type"), [("404", "404"), ("<error>", "error")])
def test_a_failed_request_is_an_error(spans: Spans, tracing: SpanRecorder, code: str, error_type: str) -> None:
    report_request(tracing, code=code)

    [span] = spans.ended
    assert (span.attributes or {})["error.type"] == error_type
    assert span.status.status_code is trace.StatusCode.ERROR


def test_a_repeated_request_is_noted_on_the_pass(spans: Spans, tracing: SpanRecorder) -> None:
    with tracing.start_span("webapp", WEB, "id-1"):
        tracing.on_retry("GET", code="503")

    [event] = spans.ended[0].events
    assert dict(event.attributes or {}) == {"http.request.method": "GET", "konverge.code": "503"}


def test_a_failure_of_ours_is_recorded_with_its_message(spans: Spans, tracing: SpanRecorder) -> None:
    with pytest.raises(NotFoundError), tracing.start_span("webapp", WEB, "id-1"):
        raise NotFoundError("deployments.apps 'web' not found")

    [span] = spans.ended
    [event] = span.events
    attributes = dict(event.attributes or {})
    assert attributes["exception.type"] == "konverge.errors.NotFoundError"
    assert attributes["exception.message"] == span.status.description == "deployments.apps 'web' not found"
    assert "test_tracing.py" in str(attributes["exception.stacktrace"])


def test_the_words_of_an_authors_exception_are_recorded_nowhere(spans: Spans, tracing: SpanRecorder) -> None:
    with pytest.raises(ValueError, match="hunter"), tracing.start_span("webapp", WEB, "id-1"):
        raise ValueError("hunter" + "2")
    quoting = ReconcileError("failed to apply resource: hunter" + "2")
    quoting.__cause__ = ValueError("hunter" + "2")
    with pytest.raises(ReconcileError), tracing.start_span("webapp", WEB, "id-2"):
        raise quoting

    for span in spans.ended:
        assert "hunter2" not in span.to_json()
        assert span.status.status_code is trace.StatusCode.ERROR
        assert (span.attributes or {})["error.type"] in ("builtins.ValueError", "konverge.errors.ReconcileError")


def test_a_cancelled_reconcile_is_no_error(spans: Spans, tracing: SpanRecorder) -> None:
    with pytest.raises(KeyboardInterrupt), tracing.start_span("webapp", WEB, "id-1"):
        raise KeyboardInterrupt

    [span] = spans.ended
    assert span.status.status_code is trace.StatusCode.UNSET
    assert span.events == ()


def test_without_a_provider_spans_go_nowhere_and_cost_little() -> None:
    tracing = SpanRecorder()
    clock = SystemClock()
    begin = clock.monotonic()
    for _ in range(1_000):
        with tracing.start_span("webapp", WEB, "id-1"):
            report_request(tracing)

    assert (clock.monotonic() - begin) / 1_000 < 0.001  # a hundredth of that on an idle machine


def test_the_extra_that_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(ConfigurationError, match=r"pip install 'konverge\[tracing\]'"):
        SpanRecorder()
