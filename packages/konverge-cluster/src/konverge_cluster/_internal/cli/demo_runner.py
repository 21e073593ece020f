"""Execution of the demo's steps: actions are requests, and the observed state comes from watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from konverge._internal.cli.plurals import format_count
from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.clock import Clock
from konverge.errors import ConnectionFailedError, KindNotServedError, KonvergeError, TooManyRequestsError
from konverge_cluster._internal.cli.demo_output import DemoOutput
from konverge_cluster._internal.cli.demo_script import (
    ApplyAction,
    DeleteAction,
    DemoState,
    DemoStep,
    IdleAction,
    StepProgress,
)

__all__ = ["DemoError", "DemoRequest", "DemoRunner"]

_FIELD_MANAGER = "konverge-demo"
_SERVED_SECONDS = 30.0
_POLL_SECONDS = 0.1


class DemoError(KonvergeError):
    """An expectation of the demo failed; the message contains the observed state."""


class DemoRequest(Protocol):
    """A request that the server recorded."""

    @property
    def time(self) -> datetime:
        """The time when the request arrived."""

    @property
    def user_agent(self) -> str:
        """The user agent of the client."""

    @property
    def verb(self) -> str:
        """The API verb, for example ``watch``."""

    @property
    def path(self) -> str:
        """The request path without the query."""


class DemoRunner:
    """Runner of the demo's steps in one namespace, one after the other.

    Args:
        client: The client of the demo itself.
        output: The output for progress and results.
        clock: The clock.
        webapp: The custom resource of the demo, as the user wrote it.
        operator_requests: Returns the recorded requests of the operator so far.
    """

    def __init__(
        self,
        client: Client,
        output: DemoOutput,
        clock: Clock,
        webapp: Object,
        operator_requests: Callable[[], Iterable[DemoRequest]],
    ) -> None:
        self._client = client
        self._output = output
        self._clock = clock
        self._key = ObjectKey.of(webapp)
        self._operator_requests = operator_requests
        self._state = DemoState(self._key.name)
        self._progress: StepProgress | None = None
        self._began = 0.0
        self._changed = asyncio.Event()

    async def wait_until_served(self, gvk: GroupVersionKind) -> None:
        """Wait until the API server serves the kind that the operator installs.

        Raises:
            DemoError: The kind is not served in time.
        """
        try:
            async with asyncio.timeout(_SERVED_SECONDS):
                while True:
                    try:
                        await self._client.mapping(gvk)
                    except KindNotServedError:
                        await self._clock.sleep(_POLL_SECONDS)
                    else:
                        return
        except TimeoutError:
            raise DemoError(
                f"the operator did not install the CustomResourceDefinition of {gvk.kind} within {_SERVED_SECONDS:g} s"
            ) from None

    async def watch_kind(self, gvk: GroupVersionKind) -> None:
        """Update the state with the objects of one kind, until cancelled."""
        while True:
            try:
                async with self._client.watch(gvk, namespace=self._key.namespace) as events:
                    async for event in events:
                        match event.type:
                            case "ADDED" | "MODIFIED":
                                self._update_state(self._state.with_object(event.object))
                            case "DELETED":
                                self._update_state(
                                    self._state.without_object(gvk.kind, event.object["metadata"]["name"])
                                )
            except (TooManyRequestsError, ConnectionFailedError):
                # A real API server reports a kind as "being initialized" shortly after its installation.
                await self._clock.sleep(_POLL_SECONDS)

    async def run_step(self, number: int, step: DemoStep) -> None:
        """Perform the action of the step and wait for its waypoints.

        Raises:
            DemoError: A waypoint was not reached in time, or the operator sent requests when it should be idle.
        """
        self._began = self._clock.monotonic()
        self._output.start_step(number, step)
        before = self._state
        result = ""
        match step.action:
            case ApplyAction(obj):
                await self.apply(obj)
            case DeleteAction(gvk, name):
                await self._client.delete(gvk, ObjectKey(self._key.namespace, name))
            case IdleAction(seconds):
                result = await self._check_idle(seconds)
        self._progress = StepProgress(step, before)
        self._check_progress()
        try:
            async with asyncio.timeout(step.deadline_seconds):
                while not self._progress.is_complete:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            missing = self._progress.describe_missing(self._state)
            raise DemoError(f"step {number} ({step.title}): {missing} after {step.deadline_seconds:g} s") from None
        self._output.finish_step(self._compute_elapsed(), result)
        await self._clock.sleep(self._output.pause_seconds)

    async def apply(self, obj: Object) -> None:
        """Apply an object with server-side apply; the state includes the response at once."""
        applied = await self._client.apply(obj, field_manager=_FIELD_MANAGER)
        self._update_state(self._state.with_object(applied.object))

    def _update_state(self, state: DemoState) -> None:
        before, self._state = self._state, state
        self._output.report_changes(before, state, self._compute_elapsed())
        self._check_progress()

    def _check_progress(self) -> None:
        if self._progress is None:
            return
        for waypoint in self._progress.observe(self._state):
            self._output.report_waypoint(waypoint, self._compute_elapsed())
        self._changed.set()

    def _compute_elapsed(self) -> float:
        return self._clock.monotonic() - self._began

    async def _check_idle(self, seconds: float) -> str:
        since = self._clock.now()
        await self._clock.sleep(seconds)
        requests = list(self._operator_requests())
        sent = [request for request in requests if request.time >= since and request.verb != "watch"]
        if sent:
            raise DemoError(
                f"the operator sent {format_count(len(sent), 'request')} in {seconds:g} s without changes, "
                f"the first was {sent[0].verb} {sent[0].path}"
            )
        watches = {request.path for request in requests if request.verb == "watch"}
        return (
            f"the operator has {format_count(len(watches), 'watch', 'watches')} open and sent "
            f"0 requests in {seconds:g} s"
        )
