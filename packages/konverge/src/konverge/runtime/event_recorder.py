"""Kubernetes events (events.k8s.io/v1) of an operator: recorded by passes, sent by a task beside them.

`ClusterEventRecorder` implements `konverge.component.EventRecorder`. Recording only notes the occurrence in
`EventSeries`,
which decides what it is worth; `ClusterEventRecorder.run` makes the requests. Events are a courtesy: they delay no
pass, fail
none, and what cannot be sent is counted and dropped.
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

from konverge.client import Client
from konverge.client.write_permit import WritePermit
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
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_micro_time
from konverge.kube.name_validation import validate_dns_subdomain
from konverge.runtime.event_series import (
    EventLimits,
    EventRequest,
    EventSeries,
    EventStatistics,
    EventTarget,
    EventType,
    Occurrence,
)

__all__ = ["ClusterEventRecorder"]

_log = logging.getLogger("konverge.runtime.event_recorder")

_EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")

# The limits of the API's validation: characters of a reason, an action and an instance, bytes of a note.
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
    """Records events and sends them.

    Everything but `run` is to be called in the loop that runs it, and returns at once.

    Args:
        client: The cluster.
        controller: Who reports, for example the operator's name (``reportingController``).
        clock: The time.
        entropy: Draws the jitter of pauses.
        instance: Which of its processes reports (``reportingInstance``); the controller and the host when not given.
        limits: How much is sent.
        permit: Nothing is sent while it does not hold; None always holds.
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
        self._deadline: float | None = None  # of the drain, once `stop` was called
        # Namespaces that refused events, with the time until which none is tried again.
        self._refusing: OrderedDict[str, float] = OrderedDict()
        self._is_served = True
        self._reported_drops = 0
        self._warn_at = 0.0
        self._reported_error = ""

    @property
    def statistics(self) -> EventStatistics:
        """What became of the events so far; it changes."""
        return self._series.statistics

    def event(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Normal event on the owner (see `konverge.component.EventRecorder`)."""
        self._record("Normal", owner, reason, message, action, related)

    def warning(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Warning event on the owner: something went wrong that a person may have to look at.

        Args:
            owner: The object that the event is about.
            reason: Why, in CamelCase, for example ``InvalidSpec``; at most 128 characters are kept.
            message: One sentence for a person, without values of Secrets; at most 1024 bytes are kept.
            action: What was tried, in CamelCase, for example ``Reconcile``; at most 128 characters are kept.
            related: The object that it happened to.
        """
        self._record("Warning", owner, reason, message, action, related)

    async def run(self) -> None:
        """Send events until `stop`. Cancelling it drops what waits."""
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
            _log.info("%d events were not sent before the end", self._series.pending)

    def stop(self, grace: timedelta = timedelta(seconds=2)) -> None:
        """Let `run` end when all that waits is sent, or after the grace period; without a permit it ends at once."""
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
            note=_truncate_note(message),
            regarding=regarding,
            related=None if related is None else _build_target(related),
        )
        self._series.record(occurrence, self._clock.now(), now)
        self._changed.set()

    async def _wait_for_events(self, seconds: float | None) -> None:
        """Until something is recorded, or so many seconds have passed; no longer than the drain may take."""
        if self._deadline is not None:
            left = max(0.0, self._deadline - self._clock.monotonic())
            seconds = left if seconds is None else min(left, seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _send_next(self) -> float | None:
        """Make one request if one is due; how long to wait before the next (None: until something is recorded)."""
        self._changed.clear()
        now = self._clock.monotonic()
        if self._series.pending and not self._get_permit_seconds() > 0:
            return _PERMIT_POLL_SECONDS
        sending = self._series.take(now)
        if sending is None:
            return self._series.compute_wait_seconds(now)
        if not self._is_served or self._is_refused(_choose_namespace(sending.occurrence.regarding), now):
            self._series.mark_refused(sending)
            return 0.0
        try:
            await self._send(sending)
        except Exception as error:  # noqa: BLE001  # a mistake costs the event and a pause, not all events after it
            self._log_unexpected_error(error)
            self._series.mark_refused(sending)
            return _RETRY_SECONDS
        self._reported_error = ""
        self._warn_about_drops()
        return 0.0

    async def _send(self, sending: EventRequest) -> None:
        for attempt in range(_TRIES):
            try:
                await self._send_request(sending)
            except AlreadyExistsError:
                break  # an attempt of ours whose answer never came: the name says what happened and when
            except (ForbiddenError, NotFoundError) as error:
                self._handle_refusal(sending, error)
                return
            except KindNotServedError as error:
                self._is_served = False
                _log.warning("no events are sent: %s", error)
                self._series.mark_refused(sending)
                return
            except (ConnectionFailedError, ServerError, TooManyRequestsError, TimeoutError) as error:
                if attempt + 1 == _TRIES or not await self._wait_before_retry():
                    _log.info("an event was not sent: %s", format_error(error))
                    self._series.mark_refused(sending)
                    return
            except KonvergeError as error:  # the server finds fault with the event, or the permit is gone
                _log.warning(
                    "event %s on %s is refused: %s", sending.occurrence.reason, _describe_request(sending), error
                )
                self._series.mark_refused(sending)
                return
            except asyncio.CancelledError:
                self._series.requeue(sending)
                raise
            else:
                break
        self._series.mark_sent()

    async def _send_request(self, sending: EventRequest) -> None:
        seconds = self._get_permit_seconds()
        if self._deadline is not None:
            seconds = min(seconds, self._deadline - self._clock.monotonic())
        async with asyncio.timeout(None if seconds == float("inf") else max(0.0, seconds)):
            event = self._build_event(sending)
            if sending.creates:
                await self._client.create(event)
                return
            series = {"series": event["series"]}
            await self._client.patch(_EVENT, ObjectKey.of(event), series, patch_type="merge")

    def _log_unexpected_error(self, error: Exception) -> None:
        """Log what nobody has foreseen as a whole, but not again for each event that it costs."""
        text = format_error(error)
        if text != self._reported_error:
            _log.error("an event was not sent, by a mistake: %s", text, exc_info=error)
            self._reported_error = text

    def _handle_refusal(self, sending: EventRequest, error: ApiError) -> None:
        if isinstance(error, NotFoundError) and not sending.creates:
            self._series.mark_lost(sending)  # its time to live is over
            return
        namespace = _choose_namespace(sending.occurrence.regarding)
        if namespace not in self._refusing:
            # A namespace that is being deleted refuses all that is new: nobody has to mend that.
            is_ending = isinstance(error, NotFoundError) or error.is_namespace_terminating
            level = logging.INFO if is_ending else logging.WARNING
            _log.log(level, "no events are sent to namespace %s for now: %s", namespace, error)
        self._refusing[namespace] = self._clock.monotonic() + _REFUSED_FOR_SECONDS
        self._refusing.move_to_end(namespace)
        if len(self._refusing) > _REFUSING_NAMESPACES:
            self._refusing.popitem(last=False)
        self._series.mark_refused(sending)

    async def _wait_before_retry(self) -> bool:
        """After a pause; not when the drain would be over by then, or the permit is gone."""
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
        """Say that events were dropped, once in a while: the counters say how many."""
        now, dropped = self._clock.monotonic(), self.statistics.dropped
        if dropped > self._reported_drops and now >= self._warn_at:
            _log.warning(
                "%d events were not sent: %d since there were too many about one object, %d since there were too many "
                "at once, %d since the server did not take them",
                dropped, self.statistics.spared, self.statistics.overflowed, self.statistics.refused,
            )  # fmt: skip
            self._reported_drops, self._warn_at = dropped, now + _WARNING_INTERVAL_SECONDS

    def _build_event(self, sending: EventRequest) -> Object:
        """The event as the API has it."""
        occurrence = sending.occurrence
        event: Object = {
            "apiVersion": _EVENT.api_version,
            "kind": _EVENT.kind,
            "metadata": {"name": _build_name(sending), "namespace": _choose_namespace(occurrence.regarding)},
            "eventTime": format_micro_time(sending.first_time),
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
        if sending.count > 1:
            event["series"] = {"count": sending.count, "lastObservedTime": format_micro_time(sending.last_time)}
        return event


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


def _build_name(sending: EventRequest) -> str:
    """The object's name and a hash of what happened and when: the same request twice is the same event.

    Names of RBAC objects may hold what no event's name may.
    """
    occurrence = sending.occurrence
    said: tuple[Any, ...] = (occurrence, format_micro_time(sending.first_time))
    digest = hashlib.sha256(repr(said).encode()).hexdigest()[:_NAME_HASH_LENGTH]
    about = occurrence.regarding.name[: _NAME_LIMIT - _NAME_HASH_LENGTH - 1]
    if validate_dns_subdomain(about):
        about = re.sub("[^a-z0-9]+", "-", about.lower()).strip("-") or "object"
    return f"{about}.{digest}"


def _normalize_word(text: str) -> str:
    """A reason or an action as validation admits it: not empty, and not too long."""
    return text[:_WORD_LIMIT] or "Unspecified"


def _truncate_note(text: str) -> str:
    """At most as many bytes as a note may have, without half a character at the end."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= _NOTE_LIMIT:
        return encoded.decode()
    ellipsis = "…".encode()
    return encoded[: _NOTE_LIMIT - len(ellipsis)].decode("utf-8", "ignore") + "…"


def _qualify_name(text: str) -> str:
    """The controller's name as validation admits it: ``[prefix/]name`` of letters, digits, ``-``, ``_`` and ``.``."""
    prefix, slash, name = text.rpartition("/")
    name = re.sub("[^A-Za-z0-9]+$|^[^A-Za-z0-9]+", "", re.sub("[^-A-Za-z0-9_.]", "-", name)[:_CONTROLLER_LIMIT])
    if slash and not validate_dns_subdomain(prefix):
        return f"{prefix}/{name or 'konverge'}"
    return name or "konverge"


def _describe_request(sending: EventRequest) -> str:
    about = sending.occurrence.regarding
    return f"{about.kind} {ObjectKey(about.namespace, about.name)}"
