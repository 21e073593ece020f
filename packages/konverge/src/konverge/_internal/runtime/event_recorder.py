"""Kubernetes events (events.k8s.io/v1) of an operator: reconciles record them, a background task sends them.

`ClusterEventRecorder` implements `konverge.component.EventRecorder`. Recording only adds the occurrence to
`EventSeries`, which decides whether it requires a request; `ClusterEventRecorder.run` sends the requests. Events are
best effort: they neither delay nor fail a reconcile. An event that cannot be sent is counted and dropped.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import socket
from collections import OrderedDict
from datetime import timedelta
from typing import Any

from konverge._internal.client import Client
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_micro_time
from konverge._internal.kube.name_validation import validate_dns_subdomain
from konverge._internal.runtime.event_series import (
    EventLimits,
    EventRequest,
    EventSeries,
    EventStatistics,
    EventTarget,
    EventType,
    Occurrence,
)
from konverge.clock import Clock, Entropy
from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    ConnectionFailedError,
    ForbiddenError,
    KindNotServedError,
    KonvergeError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    format_error,
)

__all__ = ["ClusterEventRecorder"]

_log = logging.getLogger("konverge.runtime")

_EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")

# Limits of the API's validation: characters of a reason, an action and an instance; bytes of a note.
_WORD_LIMIT = 128
_NOTE_LIMIT = 1024
_CONTROLLER_LIMIT = 63
_NAME_LIMIT = 253
_NAME_HASH_LENGTH = 16

# Events about cluster-scoped objects are in the namespace "default"; validation admits no other.
_CLUSTER_SCOPED_NAMESPACE = "default"

_TRIES = 3
_RETRY_SECONDS = 2.0
_PERMIT_POLL_SECONDS = 1.0
_REFUSED_FOR_SECONDS = 600.0
_REFUSING_NAMESPACES = 1_000
_WARNING_INTERVAL_SECONDS = 600.0


class ClusterEventRecorder:
    """Recorder of events that sends them to the cluster.

    Call every method except `run` in the event loop that runs it; each returns at once.

    Args:
        client: The cluster.
        controller: Name of the reporting controller (``reportingController``), for example the operator's name.
        clock: Source of time.
        entropy: Source of the jitter of retry delays.
        instance: Name of the reporting process (``reportingInstance``); the controller and the host when not given.
        limits: Limits on the requests and on the memory.
        permit: Permit to write; nothing is sent while it does not hold. None always holds.
    """

    def __init__(
        self,
        client: Client,
        *,
        controller: str,
        clock: Clock,
        entropy: Entropy,
        instance: str = "",
        limits: EventLimits | None = None,
        permit: WritePermit | None = None,
    ) -> None:
        self._client = client
        self._controller = _qualify_name(controller)
        self._instance = (instance or f"{self._controller}-{socket.gethostname()}")[:_WORD_LIMIT]
        self._clock = clock
        self._entropy = entropy
        self._permit = permit
        self._series = EventSeries(clock.monotonic(), limits)
        self._changed = asyncio.Event()
        self._deadline: float | None = None  # of the drain, after the call of `stop`
        # Namespaces that refused events, each with the time before which no request is sent to it.
        self._refusing: OrderedDict[str, float] = OrderedDict()
        self._is_served = True
        self._reported_drops = 0
        self._warn_at = 0.0
        self._reported_error = ""

    @property
    def statistics(self) -> EventStatistics:
        """The counters of recorded and sent events; the object is updated in place."""
        return self._series.statistics

    def event(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Normal event on the owner (see `konverge.component.EventRecorder`)."""
        self._record("Normal", owner, reason, message, action, related)

    def warning(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Warning event on the owner: a failure that a user may have to repair.

        Args:
            owner: The object of the event.
            reason: The cause, in CamelCase, for example ``InvalidSpec``; at most 128 characters are kept.
            message: One sentence for users, without values of Secrets; at most 1024 bytes are kept.
            action: The attempted action, in CamelCase, for example ``Reconcile``; at most 128 characters are kept.
            related: The secondary object of the action.
        """
        self._record("Warning", owner, reason, message, action, related)

    async def run(self) -> None:
        """Send events until `stop`. Cancelling it drops the waiting events."""
        while True:
            deadline = self._deadline
            now = self._clock.monotonic()
            if deadline is not None and (now >= deadline or not self._series.pending):
                break
            seconds = await self._send_next()
            if seconds is None or seconds > 0:
                await self._wait_for_events(seconds)
        self._warn_about_drops()
        if self._series.pending:
            _log.info("%d events were not sent before the process stopped", self._series.pending)

    def stop(self, grace: timedelta = timedelta(seconds=2)) -> None:
        """Let `run` end when all waiting events are sent or the grace period is over; without a permit at once."""
        self._deadline = self._clock.monotonic() + grace.total_seconds()
        if not self._get_permit_seconds() > 0:
            self._deadline = self._clock.monotonic()
        self._series.finish()
        self._changed.set()

    def _record(
        self, event_type: EventType, owner: Object, reason: str, message: str, action: str, related: Object | None
    ) -> None:
        now = self._clock.monotonic()
        regarding = _build_target(owner)
        if not self._is_served or self._is_refused(_choose_namespace(regarding), now):
            self.statistics.recorded += 1
            self.statistics.refused += 1
            return
        occurrence = Occurrence(
            type=event_type,
            reason=_normalize_word(reason),
            action=_normalize_word(action),
            note=_truncate_note(self._client.secret_values.hide(message, public=_list_names(owner, related))),
            regarding=regarding,
            related=None if related is None else _build_target(related),
        )
        self._series.record(occurrence, self._clock.now(), now)
        self._changed.set()

    async def _wait_for_events(self, seconds: float | None) -> None:
        """Wait until an event is recorded or the time has passed, but no longer than the drain may take."""
        if self._deadline is not None:
            left = max(0.0, self._deadline - self._clock.monotonic())
            seconds = left if seconds is None else min(left, seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _send_next(self) -> float | None:
        """Send one request if one is due; return the seconds before the next one, or None to wait for an event."""
        self._changed.clear()
        now = self._clock.monotonic()
        if self._series.pending and not self._get_permit_seconds() > 0:
            return _PERMIT_POLL_SECONDS
        request = self._series.take(now)
        if request is None:
            return self._series.compute_wait_seconds(now)
        if not self._is_served or self._is_refused(_choose_namespace(request.occurrence.regarding), now):
            self._series.mark_refused(request)
            return 0.0
        try:
            await self._send(request)
        except Exception as error:  # noqa: BLE001  # an unexpected error costs one event and a delay, not all events
            self._log_unexpected_error(error)
            self._series.mark_refused(request)
            return _RETRY_SECONDS
        self._reported_error = ""
        self._warn_about_drops()
        return 0.0

    async def _send(self, request: EventRequest) -> None:
        for attempt in range(_TRIES):
            try:
                await self._send_request(request)
            except AlreadyExistsError:
                break  # an earlier attempt without a response: the name identifies the event and its time
            except (ForbiddenError, NotFoundError) as error:
                self._handle_refusal(request, error)
                return
            except KindNotServedError as error:
                self._is_served = False
                _log.warning("events are disabled: %s", error)
                self._series.mark_refused(request)
                return
            except (ConnectionFailedError, ServerError, TooManyRequestsError, TimeoutError) as error:
                if attempt + 1 == _TRIES or not await self._wait_before_retry():
                    _log.info("event dropped after %d attempts: %s", attempt + 1, format_error(error))
                    self._series.mark_refused(request)
                    return
            except KonvergeError as error:  # the server rejects the event, or the permit is lost
                _log.warning(
                    "event %s on %s: the server refused it: %s",
                    request.occurrence.reason,
                    _describe_request(request),
                    error,
                )
                self._series.mark_refused(request)
                return
            except asyncio.CancelledError:
                self._series.requeue(request)
                raise
            else:
                break
        self._series.mark_sent()

    async def _send_request(self, request: EventRequest) -> None:
        seconds = self._get_permit_seconds()
        if self._deadline is not None:
            seconds = min(seconds, self._deadline - self._clock.monotonic())
        async with asyncio.timeout(None if seconds == float("inf") else max(0.0, seconds)):
            event = self._build_event(request)
            if request.creates:
                await self._client.create(event)
                return
            series = {"series": event["series"]}
            await self._client.patch(_EVENT, ObjectKey.of(event), series, patch_type="merge")

    def _log_unexpected_error(self, error: Exception) -> None:
        """Log an unexpected error with its traceback, but not again for each event that it costs."""
        text = format_error(error)
        if text != self._reported_error:
            _log.error("event dropped by an unexpected error: %s", text, exc_info=error)
            self._reported_error = text

    def _handle_refusal(self, request: EventRequest, error: ApiError) -> None:
        if isinstance(error, NotFoundError) and not request.creates:
            self._series.mark_lost(request)  # the event's time to live is over
            return
        namespace = _choose_namespace(request.occurrence.regarding)
        if namespace not in self._refusing:
            # A namespace that is being deleted refuses every new object; this needs no repair.
            is_ending = isinstance(error, NotFoundError) or error.is_namespace_terminating
            level = logging.INFO if is_ending else logging.WARNING
            _log.log(level, "namespace %s: no events for %g s: %s", namespace, _REFUSED_FOR_SECONDS, error)
        self._refusing[namespace] = self._clock.monotonic() + _REFUSED_FOR_SECONDS
        self._refusing.move_to_end(namespace)
        if len(self._refusing) > _REFUSING_NAMESPACES:
            self._refusing.popitem(last=False)
        self._series.mark_refused(request)

    async def _wait_before_retry(self) -> bool:
        """Wait before a retry; return False at once if the drain would be over by then, or if the permit is lost."""
        pause_seconds = _RETRY_SECONDS * self._entropy.uniform(1.0, 1.5)
        if self._deadline is not None and self._clock.monotonic() + pause_seconds >= self._deadline:
            return False
        await self._clock.sleep(pause_seconds)
        return self._get_permit_seconds() > 0

    def _get_permit_seconds(self) -> float:
        return float("inf") if self._permit is None else self._permit.seconds_left()

    def _is_refused(self, namespace: str, now: float) -> bool:
        return self._refusing.get(namespace, now) > now

    def _warn_about_drops(self) -> None:
        """Log the numbers of dropped events, at most once per interval."""
        now, dropped = self._clock.monotonic(), self.statistics.dropped
        if dropped > self._reported_drops and now >= self._warn_at:
            _log.warning(
                "%d events dropped: %d over the limit per object, %d over the limit of concurrent series, "
                "%d refused by the server or not delivered",
                dropped, self.statistics.spared, self.statistics.overflowed, self.statistics.refused,
            )  # fmt: skip
            self._reported_drops, self._warn_at = dropped, now + _WARNING_INTERVAL_SECONDS

    def _build_event(self, request: EventRequest) -> Object:
        """Return the event as an API object."""
        occurrence = request.occurrence
        event: Object = {
            "apiVersion": _EVENT.api_version,
            "kind": _EVENT.kind,
            "metadata": {"name": _build_name(request), "namespace": _choose_namespace(occurrence.regarding)},
            "eventTime": format_micro_time(request.first_time),
            "type": occurrence.type,
            "reason": occurrence.reason,
            "action": occurrence.action,
            "note": occurrence.note,
            "regarding": _build_object_reference(occurrence.regarding),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }
        if occurrence.related is not None:
            event["related"] = _build_object_reference(occurrence.related)
        if request.count > 1:
            event["series"] = {"count": request.count, "lastObservedTime": format_micro_time(request.last_time)}
        return event


def _list_names(owner: Object, related: Object | None) -> list[str]:
    """Return the names and namespaces of the objects of an event, which are not secret even if a Secret has them."""
    return [name for obj in (owner, related or {}) for name in ObjectKey.of(obj) if name]


def _build_target(obj: Object) -> EventTarget:
    metadata = obj.get("metadata") or {}
    key = ObjectKey.of(obj)
    return EventTarget(
        api_version=str(obj.get("apiVersion") or ""),
        kind=str(obj.get("kind") or ""),
        namespace=key.namespace,
        name=key.name,
        uid=str(metadata.get("uid") or ""),
        resource_version=str(metadata.get("resourceVersion") or ""),
    )


def _build_object_reference(reference: EventTarget) -> Object:
    fields = {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
        "resourceVersion": reference.resource_version,
    }
    return {name: value for name, value in fields.items() if value}


def _choose_namespace(regarding: EventTarget) -> str:
    return regarding.namespace or _CLUSTER_SCOPED_NAMESPACE


def _build_name(request: EventRequest) -> str:
    """Return the object's name with a hash of the occurrence and its time: the same request twice is the same event.

    Names of RBAC objects may contain characters that are invalid in the name of an event.
    """
    occurrence = request.occurrence
    identity: tuple[Any, ...] = (occurrence, format_micro_time(request.first_time))
    digest = hashlib.sha256(repr(identity).encode()).hexdigest()[:_NAME_HASH_LENGTH]
    about = occurrence.regarding.name[: _NAME_LIMIT - _NAME_HASH_LENGTH - 1]
    if validate_dns_subdomain(about):
        about = re.sub("[^a-z0-9]+", "-", about.lower()).strip("-") or "object"
    return f"{about}.{digest}"


def _normalize_word(text: str) -> str:
    """Return a reason or an action as validation admits it: not empty, and not too long."""
    return text[:_WORD_LIMIT] or "Unspecified"


def _truncate_note(text: str) -> str:
    """Return the text cut to the maximum bytes of a note, without half a character at the end."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= _NOTE_LIMIT:
        return encoded.decode()
    ellipsis = "…".encode()
    return encoded[: _NOTE_LIMIT - len(ellipsis)].decode("utf-8", "ignore") + "…"


def _qualify_name(text: str) -> str:
    """Return the controller's name as validation admits it: ``[prefix/]name`` of letters, digits and ``-_.``."""
    prefix, slash, name = text.rpartition("/")
    name = re.sub("[^A-Za-z0-9]+$|^[^A-Za-z0-9]+", "", re.sub("[^-A-Za-z0-9_.]", "-", name)[:_CONTROLLER_LIMIT])
    if slash and not validate_dns_subdomain(prefix):
        return f"{prefix}/{name or 'konverge'}"
    return name or "konverge"


def _describe_request(request: EventRequest) -> str:
    about = request.occurrence.regarding
    return f"{about.kind} {ObjectKey(about.namespace, about.name)}"
