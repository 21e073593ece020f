"""The examination of one object that is not ready: the requests, and the order in which causes are looked for.

It lists pods, not ReplicaSets: the controller of a pod names its ReplicaSet, whose name begins with that of its
Deployment. Refusals to create a pod are in the condition of a Deployment and of a ReplicaSet, which their own reasons
contain; other workloads report them only as events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any, Protocol

import msgspec

from konverge._internal.component.diagnosis.examination_schedule import ExaminationCache
from konverge._internal.component.diagnosis.pod_causes import (
    describe_pod,
    format_cause,
    is_ready,
    is_unscheduled,
    list_claim_names,
    summarize_pods,
)
from konverge._internal.component.diagnosis.takeover_events import TAKEN_OVER, describe_takeovers, read_event_time
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, find_controller, is_deleting
from konverge._internal.kube.selectors import LabelSelector
from konverge._internal.primitives.field_access import read_text
from konverge.clock import Clock, SystemClock
from konverge.errors import ForbiddenError, KonvergeError, NotFoundError, format_error

__all__ = ["CLAIM", "EVENT", "POD", "WORKLOADS", "Diagnosis", "DiagnosisReader", "is_examined"]

_log = logging.getLogger("konverge.component")

POD = GroupVersionKind("", "v1", "Pod")
CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")

WORKLOADS = (
    GroupVersionKind("apps", "v1", "DaemonSet"),
    GroupVersionKind("apps", "v1", "Deployment"),
    GroupVersionKind("apps", "v1", "ReplicaSet"),
    GroupVersionKind("apps", "v1", "StatefulSet"),
    GroupVersionKind("batch", "v1", "Job"),
)
"""The kinds whose pods are examined."""

_EXAMINED = frozenset((*WORKLOADS, POD, CLAIM))
_ADVICE = "Grant the rules of konverge rbac, or turn the examination off with --no-diagnosis"
_MAX_SECONDS = 5.0
_MAX_PODS = 250
_MAX_EVENTS = 50
# Controllers repeat an event while its cause lasts, at most every 16 minutes.
_MAX_EVENT_AGE = timedelta(minutes=20)
_MAX_PODS_WITH_EVENTS = 2
_MAX_CLAIMS = 2
_MAX_CAUSES = 3


class ListedPage(Protocol):
    """One page of a list, with undecoded items."""

    @property
    def items(self) -> list[msgspec.Raw]:
        """The objects as the server sent them."""


class DiagnosisReader(Protocol):
    """The reads of an examination; `konverge.client.Client` implements it."""

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        """Read one object from the server."""

    async def list_page(
        self,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
    ) -> ListedPage:
        """Read the first page of a list from the server."""


def is_examined(gvk: GroupVersionKind) -> bool:
    """Return True for a kind whose objects are examined."""
    return gvk in _EXAMINED


class Diagnosis:
    """The examination of objects that are not ready; share one between all reconciles of a process.

    Args:
        reader: The cluster. Every read is a request: no cache has the objects.
        clock: The time (default: the system clock).
    """

    def __init__(self, reader: DiagnosisReader, *, clock: Clock | None = None) -> None:
        self._reader = reader
        self._clock = clock or SystemClock()
        self._cache = ExaminationCache()
        self._has_reported_refusal = False

    async def examine(self, live: Object, *, reports_refusal: bool = False) -> tuple[str, ...]:
        """Return the causes why an object is not ready, at most three; empty if none is found.

        A failure of the server is not raised: the causes are an addition to a condition that is correct without them.

        Args:
            live: An object of a kind that `is_examined` accepts.
            reports_refusal: True to return a missing permission as a cause.

        Raises:
            asyncio.CancelledError: The examination was cancelled.
        """
        uid, now = read_text(live, "metadata", "uid"), self._clock.now()
        if not uid:
            return ()
        known = self._cache.find(uid, now)
        if known is not None:
            return known
        found: list[str] = []
        subject = f"{live.get('kind')} {ObjectKey.of(live)}"
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                await self._collect_causes(live, found)
        except ForbiddenError as error:
            level = logging.DEBUG if self._has_reported_refusal else logging.INFO
            self._has_reported_refusal = True
            _log.log(level, "%s is late, and its pods and events cannot be examined: %s. %s", subject, error, _ADVICE)
            if reports_refusal:
                found.append(format_cause(f"its pods and events cannot be examined: {error}"))
        except (KonvergeError, TimeoutError) as error:
            _log.debug("%s is late; its examination failed: %s", subject, format_error(error))
            found = found or [*self._cache.find_last(uid)]  # so that the condition stays as it is
        causes = tuple(found[:_MAX_CAUSES])
        self._cache.store(uid, causes, now)
        return causes

    async def list_takeovers(self, owner: Object) -> dict[str, tuple[str, ...]]:
        """Return the writers from which the components of an owner took fields over, by the identity of the object.

        They come from events, which clusters keep for an hour by default. A failure of the server is not raised.

        Args:
            owner: The owner.

        Raises:
            asyncio.CancelledError: The request was cancelled.
        """
        selector = f"regarding.uid={read_text(owner, 'metadata', 'uid')},reason={TAKEN_OVER}"
        namespace = read_text(owner, "metadata", "namespace") or "default"
        try:
            async with asyncio.timeout(_MAX_SECONDS):
                events = await self._list(EVENT, namespace, field_selector=selector, limit=_MAX_EVENTS)
        except (KonvergeError, TimeoutError) as error:
            _log.debug("the events of %s cannot be listed: %s", ObjectKey.of(owner), format_error(error))
            return {}
        return describe_takeovers(events)

    async def _collect_causes(self, live: Object, found: list[str]) -> None:
        """Append the causes to a list, which has those that were found before an error."""
        gvk = GroupVersionKind.of(live)
        if gvk == CLAIM:
            await self._collect_event(live, found, warnings_only=False)
        elif gvk == POD:
            cause = describe_pod(live) or await self._find_pod_event(live)
            found += filter(None, [cause])
            await self._collect_claim_causes([live], found)
        else:
            await self._collect_workload_causes(live, found)

    async def _collect_workload_causes(self, live: Object, found: list[str]) -> None:
        waiting = [pod for pod in await self._list_pods(live) if not is_ready(pod)]
        causes = {pod["metadata"]["name"]: describe_pod(pod) for pod in waiting}
        found += summarize_pods(causes)
        unexplained = [pod for pod in waiting if not causes[pod["metadata"]["name"]] and not is_deleting(pod)]
        events = {
            pod["metadata"]["name"]: await self._find_pod_event(pod) for pod in unexplained[:_MAX_PODS_WITH_EVENTS]
        }
        found += summarize_pods(events)
        await self._collect_claim_causes(waiting, found)
        if not found:  # the controller may be unable to create a pod
            await self._collect_event(live, found)

    async def _list_pods(self, live: Object) -> list[Object]:
        """Return the pods of a workload, by name; of a large workload a part."""
        spec = live.get("spec")
        selector = LabelSelector.from_object(spec.get("selector") if isinstance(spec, dict) else None)
        if selector is None or not selector.requirements:
            return []
        pods = await self._list(
            POD, read_text(live, "metadata", "namespace"), label_selector=str(selector), limit=_MAX_PODS
        )
        return sorted((pod for pod in pods if _is_pod_of(pod, live)), key=lambda pod: str(pod["metadata"]["name"]))

    async def _find_pod_event(self, pod: Object) -> str:
        # A pod keeps the events of its scheduling after it has a node.
        return await self._find_event(pod, ignored=() if is_unscheduled(pod) else ("FailedScheduling",))

    async def _collect_event(self, regarding: Object, found: list[str], *, warnings_only: bool = True) -> None:
        found += filter(None, [await self._find_event(regarding, warnings_only=warnings_only)])

    async def _find_event(self, regarding: Object, *, ignored: Sequence[str] = (), warnings_only: bool = True) -> str:
        """Return the latest event about an object as ``<reason>: <note>``; empty without one."""
        selector = f"regarding.uid={regarding['metadata']['uid']}" + (",type=Warning" if warnings_only else "")
        namespace = read_text(regarding, "metadata", "namespace")
        events = await self._list(EVENT, namespace, field_selector=selector, limit=_MAX_EVENTS)
        oldest = self._clock.now() - _MAX_EVENT_AGE
        dated = [(read_event_time(event), event) for event in events if read_text(event, "reason") not in ignored]
        recent = [(time, event) for time, event in dated if time is not None and time >= oldest]
        _, latest = max(recent, key=itemgetter(0), default=(None, None))
        return "" if latest is None else format_cause(read_text(latest, "reason"), read_text(latest, "note"))

    async def _collect_claim_causes(self, pods: Iterable[Object], found: list[str]) -> None:
        """Append the causes of unbound claims, for pods without a node."""
        claims = dict.fromkeys(
            ObjectKey(read_text(pod, "metadata", "namespace"), name)
            for pod in pods
            if is_unscheduled(pod)
            for name in list_claim_names(pod)
        )
        for key in list(claims)[:_MAX_CLAIMS]:
            subject = f"PersistentVolumeClaim {key.name}"
            try:
                claim = await self._reader.get(CLAIM, key)
            except NotFoundError:
                found.append(f"{subject} does not exist")
                continue
            phase = read_text(claim, "status", "phase")
            if phase != "Bound":
                event = await self._find_event(claim, warnings_only=False)
                found.append(format_cause(f"{subject} is not bound (phase {phase or 'unknown'})", event))

    async def _list(
        self, gvk: GroupVersionKind, namespace: str, *, label_selector: str = "", field_selector: str = "", limit: int
    ) -> list[Object]:
        """Return the first objects of a list in a namespace."""
        page = await self._reader.list_page(
            gvk,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
        )
        decoded: list[Any] = [msgspec.json.decode(item) for item in page.items]
        return [obj for obj in decoded if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict)]


def _is_pod_of(pod: Object, live: Object) -> bool:
    """Return True if the workload controls the pod, a Deployment through a ReplicaSet."""
    controller = find_controller(pod)
    if controller is None:
        return False
    if live.get("kind") == "Deployment":
        prefix = f"{live['metadata']['name']}-"
        return controller.get("kind") == "ReplicaSet" and str(controller.get("name")).startswith(prefix)
    return bool(controller.get("uid") == live["metadata"]["uid"])
