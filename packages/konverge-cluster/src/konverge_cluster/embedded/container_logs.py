"""What the containers of played pods have printed (``pods/log``): a few lines that tell when they started and ended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from konverge.clock import Clock
from konverge.errors import BadRequestError, NotFoundError
from konverge.kube import Object, parse_time
from konverge_cluster.embedded.query_parameters import is_true, parse_integer
from konverge_cluster.embedded.validation.field_errors import FieldError, field_invalid, new_invalid

__all__ = ["LogOptions", "LogStream", "find_container", "format_log"]

_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What of a log is wanted.

    Attributes:
        container: Whose; empty for the only one.
        follow: Whether what is still to come is wanted, too.
        timestamps: Whether each line says when.
        tail_lines: So many of the last lines; None for all.
        limit_bytes: At most so many bytes; None for all.
        since_seconds: Nothing older than that; None for all.
    """

    container: str = ""
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_seconds: int | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str], pod: str) -> LogOptions:
        """Read the query.

        Raises:
            InvalidError: A number is out of its range.
        """
        found = {name: parse_integer(query, name) for name in ("tailLines", "limitBytes", "sinceSeconds")}
        mistakes: list[FieldError] = []
        tail = found["tailLines"]
        if tail is not None and tail < 0:
            mistakes.append(field_invalid("tailLines", tail, "must be greater than or equal to 0"))
        for name in ("limitBytes", "sinceSeconds"):
            number = found[name]
            if number is not None and number < 1:
                mistakes.append(field_invalid(name, number, "must be greater than 0"))
        if mistakes:
            raise new_invalid("", "PodLogOptions", pod, mistakes)
        return cls(
            container=query.get("container", ""),
            follow=is_true(query, "follow"),
            timestamps=is_true(query, "timestamps"),
            tail_lines=tail,
            limit_bytes=found["limitBytes"],
            since_seconds=found["sinceSeconds"],
        )


def find_container(pod: Object, options: LogOptions) -> str:
    """The container that is meant.

    Raises:
        BadRequestError: There are several, and none is named; or there is none of that name.
    """
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers = [each["name"] for each in spec.get("containers") or ()]
    everyone = [each["name"] for each in spec.get("initContainers") or ()] + containers
    if options.container:
        if options.container not in everyone:
            raise BadRequestError(f"container {options.container} is not valid for pod {name}")
        return options.container
    if len(containers) != 1:
        known = f"choose one of: [{' '.join(containers)}]"
        initial = [each for each in everyone if each not in containers]
        if initial:
            known += f" or one of the init containers: [{' '.join(initial)}]"
        raise BadRequestError(f"a container name must be specified for pod {name}, {known}")
    return str(containers[0])


def format_log(pod: Object, container: str, options: LogOptions, now: datetime) -> bytes:
    """What the container has printed so far."""
    lines = _build_lines(pod, container)
    if options.since_seconds is not None:
        since = options.since_seconds
        lines = [(moment, text) for moment, text in lines if (now - parse_time(moment)).total_seconds() <= since]
    if options.tail_lines is not None:
        lines = lines[-options.tail_lines :] if options.tail_lines else []
    told = [f"{moment} {text}" if options.timestamps else text for moment, text in lines]
    text = "".join(f"{line}\n" for line in told).encode()
    return text if options.limit_bytes is None else text[: options.limit_bytes]


def _build_lines(pod: Object, container: str) -> list[tuple[str, str]]:
    """Each line and its time."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    status = next((each for each in statuses if each.get("name") == container), None)
    if status is None:
        return []
    state = status.get("state") or {}
    ended = state.get("terminated")
    began = (state.get("running") or ended or {}).get("startedAt")
    found = [(began, f"{container}: started {status.get('image', '')}")] if began else []
    if began and status.get("ready"):
        found.append((began, f"{container}: ready"))
    if ended is not None and ended.get("finishedAt"):
        found.append((ended["finishedAt"], f"{container}: ended with exit code {ended.get('exitCode', 0)}"))
    return found


class LogStream(AsyncIterator[bytes]):
    """A log that is followed: ends with its container, or when it is closed.

    Args:
        read: Reads the pod.
        container: Whose log.
        options: What of it.
        clock: Waits between two looks.
    """

    def __init__(self, read: Callable[[], Object], container: str, options: LogOptions, clock: Clock) -> None:
        self._read = read
        self._container = container
        self._options = options
        self._clock = clock
        self._told = b""
        self._is_closed = False

    async def aclose(self) -> None:
        """End the stream."""
        self._is_closed = True

    def __aiter__(self) -> LogStream:
        return self

    async def __anext__(self) -> bytes:
        while not self._is_closed:
            try:
                pod = self._read()
            except NotFoundError:
                break
            text = format_log(pod, self._container, self._options, self._clock.now())
            if text != self._told and text.startswith(self._told):
                new, self._told = text[len(self._told) :], text
                return new
            if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                break
            await self._clock.sleep(_POLL_SECONDS)
        raise StopAsyncIteration
