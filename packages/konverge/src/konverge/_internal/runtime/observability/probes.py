"""Probe responses: named checks that pass or return a reason. Pure.

*Live* means that the process can still work: its event loop responds, and no task that must run for the life of the
operator has ended. *Ready* means that the operator's work is correct now: its owners are listed, each cached collection
is complete and fresh, its webhooks respond, and it is not stopping. Leadership does not matter: a warm standby replica
is ready.

The text is that of a kube-apiserver: ``ok``; with ``?verbose`` and on failure one line per check.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from konverge._internal.runtime.observability.sources import ObservedInformer, RuntimeSources
from konverge.errors import KindNotServedError

__all__ = [
    "DEFAULT_FRESHNESS",
    "HealthCheck",
    "HealthCheckResult",
    "ProbeResponse",
    "build_check_response",
    "build_livez_checks",
    "build_probe_response",
    "build_readyz_checks",
    "run_check",
]

DEFAULT_FRESHNESS = timedelta(seconds=180)
"""Maximum age of the cache.

A server sends a bookmark about once a minute, so a healthy collection is younger than that, and one missed bookmark is
harmless. A watch that is silent for 150 s is closed and opened again. That takes a round trip, or a delay of up to 30 s
if the server is unavailable. An older collection has therefore already retried in vain.
"""

_MAX_NAMED = 5
_MAX_REASON = 500

CheckReason: TypeAlias = "str | None"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One check of a probe.

    Args:
        name: Name that is shown, excluded, and queried alone (``/readyz/<name>``): letters, digits, ``-``, ``.``.
        find: Returns None if the check passes, else the reason in a sentence without confidential data: probes need no
            authentication. It may be a coroutine function; it has a few seconds. An exception is a failure.
    """

    name: str
    find: Callable[[], CheckReason | Awaitable[CheckReason]]


@dataclass(frozen=True, slots=True)
class HealthCheckResult:
    """Result of one check.

    Args:
        name: The name of the check.
        reason: The reason of the failure; None for success.
        is_excluded: Whether the probe excluded the check, which then did not run.
    """

    name: str
    reason: str | None = None
    is_excluded: bool = False


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """The HTTP status and the text of a probe response."""

    status: int
    text: str


async def run_check(check: HealthCheck) -> HealthCheckResult:
    """Run a check; an exception is a failure of this check only.

    Only the type of the exception is reported: its text may be confidential.
    """
    try:
        result = check.find()
        reason = await result if inspect.isawaitable(result) else result
    except Exception as error:  # noqa: BLE001  # an author's check, which must not break the endpoint
        return HealthCheckResult(check.name, f"the check raised {type(error).__name__}")
    return HealthCheckResult(check.name, None if reason is None else _to_one_line(str(reason)))


def build_probe_response(
    probe: str, outcomes: Sequence[HealthCheckResult], *, exclude: Iterable[str] = (), verbose: bool = False
) -> ProbeResponse:
    """Build the response for all checks together.

    Args:
        probe: The name of the probe, for example ``readyz``.
        outcomes: The results of the checks, including excluded ones.
        exclude: The checks that the probe excluded, to report unknown names.
        verbose: Show each check also on success.
    """
    failed = any(outcome.reason is not None for outcome in outcomes)
    if not failed and not verbose:
        return ProbeResponse(200, "ok")
    lines = [_format_line(outcome) for outcome in outcomes]
    if unknown := sorted(set(exclude) - {outcome.name for outcome in outcomes}):
        lines.append(
            f"warn: some health checks cannot be excluded: no matches for {', '.join(map(_quote_name, unknown))}"
        )
    lines.append(f"{probe} check {'failed' if failed else 'passed'}")
    return ProbeResponse(500 if failed else 200, "".join(f"{line}\n" for line in lines))


def build_check_response(outcome: HealthCheckResult) -> ProbeResponse:
    """Build the response for one check alone."""
    if outcome.reason is None:
        return ProbeResponse(200, "ok")
    return ProbeResponse(500, f"internal server error: {outcome.reason}\n")


def build_livez_checks(sources: RuntimeSources) -> list[HealthCheck]:
    """Return the checks that the process can still work."""
    return [HealthCheck("ping", lambda: None), HealthCheck("tasks", lambda: _check_tasks(sources))]


def build_readyz_checks(sources: RuntimeSources, freshness: timedelta = DEFAULT_FRESHNESS) -> list[HealthCheck]:
    """Return the checks that the operator's work is correct now.

    Args:
        sources: The running operator.
        freshness: Maximum age of the cache.
    """
    checks = [
        HealthCheck("ping", lambda: None),
        HealthCheck("started", lambda: _check_started(sources)),
        HealthCheck("informers-synced", lambda: _check_synced(sources.informers())),
        HealthCheck("informers-fresh", lambda: _check_freshness(sources.informers(), freshness.total_seconds())),
        HealthCheck("shutdown", lambda: "the operator is stopping" if sources.is_stopping() else None),
    ]
    webhooks = sources.webhooks_unready_reason
    if webhooks is not None:
        checks.append(HealthCheck("webhooks", lambda: webhooks() or None))
    return checks


def _check_started(sources: RuntimeSources) -> CheckReason:
    if sources.is_started():
        return None
    # Only the step: the response of the server may be confidential.
    step = sources.start_waits_for()
    return "the owners are not listed yet" + (f"; {step} failed and is being retried" if step else "")


def _check_tasks(sources: RuntimeSources) -> CheckReason:
    if sources.is_stopping():
        return None
    return _format_names("ended unexpectedly", (task.get_name() for task in sources.tasks() if task.done()))


def _check_synced(informers: Iterable[ObservedInformer]) -> CheckReason:
    return _format_names(
        "not synced",
        (str(informer.gvk) for informer in informers if not informer.synced and not _is_absent(informer)),
    )


def _check_freshness(informers: Iterable[ObservedInformer], limit_seconds: float) -> CheckReason:
    ages = ((informer.gvk, informer.age_seconds) for informer in informers if informer.synced)
    return _format_names(
        f"older than {limit_seconds:g} s",
        (f"{gvk} ({age:.0f} s)" for gvk, age in ages if age is not None and age > limit_seconds),
    )


def _is_absent(informer: ObservedInformer) -> bool:
    """Return whether the kind is not served: there is nothing to sync, and the kind may be added at any time."""
    return isinstance(informer.last_error, KindNotServedError)


def _format_names(problem: str, names: Iterable[str]) -> CheckReason:
    affected = sorted(names)
    if not affected:
        return None
    more = f" and {len(affected) - _MAX_NAMED} more" if len(affected) > _MAX_NAMED else ""
    return f"{problem}: {', '.join(affected[:_MAX_NAMED])}{more}"


def _format_line(outcome: HealthCheckResult) -> str:
    if outcome.is_excluded:
        return f"[+]{outcome.name} excluded: ok"
    if outcome.reason is None:
        return f"[+]{outcome.name} ok"
    return f"[-]{outcome.name} failed: {outcome.reason}"


def _to_one_line(text: str) -> str:
    return " ".join(text.split())[:_MAX_REASON]


def _quote_name(name: str) -> str:
    return f'"{_to_one_line(name)}"'
