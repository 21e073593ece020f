"""Where the story is played: acts are requests, and what is seen comes from watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol

from konverge.cli.counted import counted
from konverge.cli.screen import Screen
from konverge.cli.story import Apply, Delete, Progress, StayQuiet, Step, World
from konverge.client import Client
from konverge.clock import Clock
from konverge.errors import ConnectionFailedError, KindNotServedError, KonvergeError, TooManyRequestsError
from konverge.kube import GroupVersionKind, Object, ObjectKey

__all__ = ["Request", "Stage", "StoryError"]

_FIELD_MANAGER = "konverge-demo"
_SERVED_SECONDS = 30.0
_POLL_SECONDS = 0.1


class StoryError(KonvergeError):
    """Something in the story did not happen; the message says what was seen instead."""


class Request(Protocol):
    """A line of the server's record."""

    @property
    def time(self) -> datetime:
        """When it arrived."""

    @property
    def user_agent(self) -> str:
        """Who asked."""

    @property
    def verb(self) -> str:
        """The API verb, for example ``watch``."""

    @property
    def path(self) -> str:
        """The path, without the query."""


class Stage:
    """Plays steps in one namespace, one after the other, while `follow` runs for each kind in view.

    Args:
        client: The demo's own.
        screen: Where it is seen.
        clock: The time.
        webapp: The custom resource that the story is about, as the user wrote it.
        operator_requests: The record of what the operator has asked so far.
    """

    def __init__(
        self,
        client: Client,
        screen: Screen,
        clock: Clock,
        webapp: Object,
        operator_requests: Callable[[], Iterable[Request]],
    ) -> None:
        self._client = client
        self._screen = screen
        self._clock = clock
        self._key = ObjectKey.of(webapp)
        self._operator_requests = operator_requests
        self._world = World(self._key.name)
        self._progress: Progress | None = None
        self._began = 0.0
        self._changed = asyncio.Event()

    async def wait_until_served(self, gvk: GroupVersionKind) -> None:
        """Wait until the operator has installed its definition.

        Raises:
            StoryError: It has not, in time.
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
            raise StoryError(f"the operator did not install {gvk.kind} within {_SERVED_SECONDS:g} s") from None

    async def follow(self, gvk: GroupVersionKind) -> None:
        """Keep the world up to date with the objects of one kind, until cancelled."""
        while True:
            try:
                async with self._client.watch(gvk, namespace=self._key.namespace) as events:
                    async for event in events:
                        match event.type:
                            case "ADDED" | "MODIFIED":
                                self._see(self._world.with_object(event.object))
                            case "DELETED":
                                self._see(self._world.without(gvk.kind, event.object["metadata"]["name"]))
            except (TooManyRequestsError, ConnectionFailedError):
                # A kind that was installed a moment ago is "being initialized" on a real server.
                await self._clock.sleep(_POLL_SECONDS)

    async def play(self, number: int, step: Step) -> None:
        """Do what the step does, and wait for what must be seen then.

        Raises:
            StoryError: A waypoint was not reached in time, or the operator was not quiet.
        """
        self._began = self._clock.monotonic()
        self._screen.begin(number, step)
        before = self._world
        result = ""
        match step.act:
            case Apply(obj):
                await self.apply(obj)
            case Delete(gvk, name):
                await self._client.delete(gvk, ObjectKey(self._key.namespace, name))
            case StayQuiet(seconds):
                result = await self._stay_quiet(seconds)
        self._progress = Progress(step, before)
        self._observe()
        try:
            async with asyncio.timeout(step.deadline_seconds):
                while not self._progress.is_complete:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            missing = self._progress.missing(self._world)
            raise StoryError(f"step {number} ({step.title}): {missing} after {step.deadline_seconds:g} s") from None
        self._screen.end(self._elapsed(), result)
        await self._clock.sleep(self._screen.pause_seconds)

    async def apply(self, obj: Object) -> None:
        """Server-side apply; the world shows the answer at once."""
        applied = await self._client.apply(obj, field_manager=_FIELD_MANAGER)
        self._see(self._world.with_object(applied.object))

    def _see(self, world: World) -> None:
        before, self._world = self._world, world
        self._screen.change(before, world, self._elapsed())
        self._observe()

    def _observe(self) -> None:
        if self._progress is None:
            return
        for waypoint in self._progress.observe(self._world):
            self._screen.reach(waypoint, self._elapsed())
        self._changed.set()

    def _elapsed(self) -> float:
        return self._clock.monotonic() - self._began

    async def _stay_quiet(self, seconds: float) -> str:
        since = self._clock.now()
        await self._clock.sleep(seconds)
        requests = list(self._operator_requests())
        sent = [request for request in requests if request.time >= since and request.verb != "watch"]
        if sent:
            raise StoryError(
                f"the operator sent {counted(len(sent), 'request')} in {seconds:g} s in which nothing happened, "
                f"the first one {sent[0].verb} {sent[0].path}"
            )
        watches = {request.path for request in requests if request.verb == "watch"}
        return f"the operator has {counted(len(watches), 'watch', 'watches')} open and sent 0 requests in {seconds:g} s"
