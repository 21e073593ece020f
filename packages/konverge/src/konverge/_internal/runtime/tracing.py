"""OpenTelemetry spans: one per reconcile, with one child span per request that the reconcile sends.

`SpanRecorder` implements `runtime.controller_observer.ReconcileTracer` and
`client.request_observer.RequestObserver`. A process without it records no spans and has no overhead. It needs
the extra ``tracing``, which installs only the API: the tracer provider of the program decides which spans are kept and
where they are sent.

The span of a request is created when the attempt has ended, with the time at which it began. Its parent is the current
span of the task that sent it. The server's own spans are not connected to it, since no ``traceparent`` header is sent.

Values of Secrets appear in no span (invariant 7). Of an exception from outside konverge, only the type and the
positions of its traceback are recorded, since an author's message may contain anything. Of a request, neither query nor
body is recorded.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from konverge._internal.kube import ObjectKey
from konverge._internal.runtime.controller import PartialFailureError
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError, KonvergeError, iter_causes

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

    Attributes: TypeAlias = dict[str, str | int]

__all__ = ["SpanRecorder"]

_SCOPE = "konverge"
_FRAMES_LIMIT = 30
_MESSAGE_LIMIT = 1_000


class SpanRecorder:
    """Recorder of spans for reconciles and requests.

    Args:
        provider: Receives the spans; the global tracer provider when not given.
        clock: The wall clock for the spans of requests; the system's when not given.

    Raises:
        ConfigurationError: OpenTelemetry is not installed.
    """

    def __init__(self, provider: TracerProvider | None = None, *, clock: Clock | None = None) -> None:
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise ConfigurationError(
                "tracing: expected OpenTelemetry, found none; run pip install 'konverge[tracing]'"
            ) from error
        self._trace = trace
        self._tracer = trace.get_tracer(_SCOPE, tracer_provider=provider)
        self._clock = clock or SystemClock()

    @contextmanager
    def start_span(self, controller: str, key: ObjectKey, reconcile_id: str) -> Iterator[None]:
        """Run the block in the span of one reconcile; record an exception that leaves the block on the span."""
        attributes: Attributes = {
            "konverge.controller": controller,
            "konverge.object": str(key),
            "konverge.reconcile_id": reconcile_id,
            "k8s.object.name": key.name,
        }
        if key.namespace:
            attributes["k8s.namespace.name"] = key.namespace
        with self._tracer.start_as_current_span(
            f"reconcile {controller}", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except Exception as error:
                self._record_failure(span, error)
                raise

    def on_request(
        self, method: str, path: str, *, code: str, seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        """Record the span of an attempt that has ended (see `client.request_observer.RequestObserver`)."""
        end = int(self._clock.now().timestamp() * 1e9)
        span = self._tracer.start_span(
            method, kind=self._trace.SpanKind.CLIENT, start_time=end - int(max(0.0, seconds) * 1e9)
        )
        if span.is_recording():
            span.set_attributes(_build_request_attributes(method, path, code, sent_bytes, received_bytes))
            if not code.isdecimal() or int(code) >= 400:
                span.set_attribute("error.type", code.strip("<>"))
                span.set_status(self._trace.StatusCode.ERROR)
        span.end(end)

    def on_retry(self, method: str, *, code: str) -> None:
        """Record on the current span that an attempt is about to be retried."""
        self._trace.get_current_span().add_event(
            "request retried", {"http.request.method": method, "konverge.code": code}
        )

    def _record_failure(self, span: Span, error: Exception) -> None:
        if not span.is_recording():
            return
        if isinstance(error, PartialFailureError):
            error = error.failure
        kind = type(error)
        attributes: Attributes = {
            "exception.type": f"{kind.__module__}.{kind.__qualname__}",
            "exception.stacktrace": "".join(traceback.format_tb(error.__traceback__, -_FRAMES_LIMIT)),
        }
        message = (
            str(error)[:_MESSAGE_LIMIT] if isinstance(error, KonvergeError) and not _may_quote_others(error) else ""
        )
        if message:
            attributes["exception.message"] = message
        span.add_event("exception", attributes)
        span.set_attribute("error.type", attributes["exception.type"])
        span.set_status(self._trace.StatusCode.ERROR, message or None)


def _build_request_attributes(method: str, path: str, code: str, sent_bytes: int, received_bytes: int) -> Attributes:
    """Return the attributes by the names of OpenTelemetry's semantic conventions for HTTP clients."""
    attributes: Attributes = {
        "http.request.method": method,
        "url.path": path,
        "http.request.body.size": sent_bytes,
        "http.response.body.size": received_bytes,
    }
    if code.isdecimal():
        attributes["http.response.status_code"] = int(code)
    return attributes


def _may_quote_others(error: BaseException) -> bool:
    """Return whether a konverge error may quote a text from outside konverge, such as an author's message."""
    return not all(isinstance(cause, KonvergeError) for cause in iter_causes(error))
