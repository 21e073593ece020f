"""The logs of simulated containers (``pods/log``): a few lines about their start and end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from konverge._internal.kube import Object, parse_time
from konverge.clock import Clock
from konverge.errors import BadRequestError, NotFoundError
from konverge_cluster._internal.embedded.query_parameters import is_true, parse_integer
from konverge_cluster._internal.embedded.validation.field_errors import FieldError, field_invalid, new_invalid

__all__ = ["LogOptions", "LogStream", "find_container", "format_log"]

_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of a log request.

    Attributes:
        container: The name of the container; empty for the only one.
        follow: True to continue with future lines.
        timestamps: True to begin each line with its time.
        tail_lines: The number of last lines; None for all.
        limit_bytes: The maximum size in bytes; None for no limit.
        since_seconds: The maximum age in seconds; None for all.
    """

    container: str = ""
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_seconds: int | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str], pod: str) -> LogOptions:
        """Parse the query parameters.

        Raises:
            InvalidError: A number is out of range.
        """
        numbers = {name: parse_integer(query, name) for name in ("tailLines", "limitBytes", "sinceSeconds")}
        errors: list[FieldError] = []
        tail = numbers["tailLines"]
        if tail is not None and tail < 0:
            errors.append(field_invalid("tailLines", tail, "must be greater than or equal to 0"))
        for name in ("limitBytes", "sinceSeconds"):
            number = numbers[name]
            if number is not None and number < 1:
                errors.append(field_invalid(name, number, "must be greater than 0"))
        if errors:
            raise new_invalid("", "PodLogOptions", pod, errors)
        return cls(
            container=query.get("container", ""),
            follow=is_true(query, "follow"),
            timestamps=is_true(query, "timestamps"),
            tail_lines=tail,
            limit_bytes=numbers["limitBytes"],
            since_seconds=numbers["sinceSeconds"],
        )


def find_container(pod: Object, options: LogOptions) -> str:
    """Return the name of the requested container.

    Raises:
        BadRequestError: The pod has several containers and no name is given, or no container has that name.
    """
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers = [entry["name"] for entry in spec.get("containers") or ()]
    all_containers = [entry["name"] for entry in spec.get("initContainers") or ()] + containers
    if options.container:
        if options.container not in all_containers:
            raise BadRequestError(f"container {options.container} is not valid for pod {name}")
        return options.container
    if len(containers) != 1:
        choices = f"choose one of: [{' '.join(containers)}]"
        initial = [container for container in all_containers if container not in containers]
        if initial:
            choices += f" or one of the init containers: [{' '.join(initial)}]"
        raise BadRequestError(f"a container name must be specified for pod {name}, {choices}")
    return str(containers[0])


def format_log(pod: Object, container: str, options: LogOptions, now: datetime) -> bytes:
    """Return the log of the container so far."""
    lines = _build_lines(pod, container)
    if options.since_seconds is not None:
        since = options.since_seconds
        lines = [(moment, text) for moment, text in lines if (now - parse_time(moment)).total_seconds() <= since]
    if options.tail_lines is not None:
        lines = lines[-options.tail_lines :] if options.tail_lines else []
    output = [f"{moment} {text}" if options.timestamps else text for moment, text in lines]
    text = "".join(f"{line}\n" for line in output).encode()
    return text if options.limit_bytes is None else text[: options.limit_bytes]


def _build_lines(pod: Object, container: str) -> list[tuple[str, str]]:
    """Return the time and the text of each line."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    status = next((entry for entry in statuses if entry.get("name") == container), None)
    if status is None:
        return []
    state = status.get("state") or {}
    ended = state.get("terminated")
    began = (state.get("running") or ended or {}).get("startedAt")
    lines = [(began, f"{container}: started {status.get('image', '')}")] if began else []
    if began and status.get("ready"):
        lines.append((began, f"{container}: ready"))
    if ended is not None and ended.get("finishedAt"):
        lines.append((ended["finishedAt"], f"{container}: ended with exit code {ended.get('exitCode', 0)}"))
    return lines


class LogStream(AsyncIterator[bytes]):
    """A followed log: it ends when its container ends or when it is closed.

    Args:
        read: Returns the current pod.
        container: The name of the container.
        options: The options of the request.
        clock: The clock for the delay between two reads.
    """

    def __init__(self, read: Callable[[], Object], container: str, options: LogOptions, clock: Clock) -> None:
        self._read = read
        self._container = container
        self._options = options
        self._clock = clock
        self._sent = b""
        self._is_closed = False

    async def aclose(self) -> None:
        """Close the stream; iteration then ends."""
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
            if text != self._sent and text.startswith(self._sent):
                new, self._sent = text[len(self._sent) :], text
                return new
            if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                break
            await self._clock.sleep(_POLL_SECONDS)
        raise StopAsyncIteration
