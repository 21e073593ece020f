"""What a probe is answered: named checks, each of which is fine or says why not. Pure.

*Live* means that the process can still work: its event loop answers (or nobody would), and nothing that must run for as
long as the operator has ended. *Ready* means that what it does now is right: it has listed its owners, each collection
in memory is whole and young, its webhooks answer, and it has not been told to stop. Who leads does not matter: a warm
stand-by is ready.

The text is that of a kube-apiserver: ``ok``, or with ``?verbose`` and on failure one line a check.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from konverge.errors import KindNotServedError
from konverge.runtime.observability.sources import ObservedInformer, RuntimeSources

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
"""How old what is held in memory may be.

A server sends a bookmark about once a minute, so a healthy collection is younger than that, and one missed bookmark is
nothing. A watch that is silent for 150 s is given up and opened again, which takes a round trip, or a pause of up to
30 s if the server is away: so who is older has tried again already, in vain.
"""

_MAX_NAMED = 5
_MAX_REASON = 500

CheckReason: TypeAlias = "str | None"


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that a probe asks.

    Args:
        name: By which it is shown, excluded, and asked for alone (``/readyz/<name>``): letters, digits, ``-``, ``.``.
        find: Gives None when all is well, else why not, in a sentence that anybody may read: probes need no
            authentication. It may be a coroutine function; it gets a few seconds. Raising is failing.
    """

    name: str
    find: Callable[[], CheckReason | Awaitable[CheckReason]]


@dataclass(frozen=True, slots=True)
class HealthCheckResult:
    """What a check has found.

    Args:
        name: The check's.
        reason: Why it failed; None when it did not.
        is_excluded: It was not asked, since the probe said so.
    """

    name: str
    reason: str | None = None
    is_excluded: bool = False


@dataclass(frozen=True, slots=True)
class ProbeResponse:
    """The HTTP status and the text."""

    status: int
    text: str


async def run_check(check: HealthCheck) -> HealthCheckResult:
    """Ask a check; whatever it raises is its failure, and nobody else's.

    Only the type of what was raised is told: its text may hold what is not for everybody.
    """
    try:
        found = check.find()
        reason = await found if inspect.isawaitable(found) else found
    except Exception as error:  # noqa: BLE001  # an author's check, which must not take the endpoint down
        return HealthCheckResult(check.name, f"the check itself failed with {type(error).__name__}")
    return HealthCheckResult(check.name, None if reason is None else _to_one_line(str(reason)))


def build_probe_response(
    probe: str, outcomes: Sequence[HealthCheckResult], *, exclude: Iterable[str] = (), verbose: bool = False
) -> ProbeResponse:
    """The answer for all checks together.

    Args:
        probe: What was asked, for example ``readyz``.
        outcomes: What the checks have found, excluded ones included.
        exclude: What the probe wanted to exclude, to name what it could not.
        verbose: Show each check also when all is well.
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
    """The answer for one check alone."""
    if outcome.reason is None:
        return ProbeResponse(200, "ok")
    return ProbeResponse(500, f"internal server error: {outcome.reason}\n")


def build_livez_checks(sources: RuntimeSources) -> list[HealthCheck]:
    """What says that the process can still work."""
    return [HealthCheck("ping", lambda: None), HealthCheck("tasks", lambda: _check_tasks(sources))]


def build_readyz_checks(sources: RuntimeSources, freshness: timedelta = DEFAULT_FRESHNESS) -> list[HealthCheck]:
    """What says that the operator's work is right now.

    Args:
        sources: The running operator.
        freshness: How old what is held in memory may be.
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
    # The step alone: what the server has answered is not for everybody.
    step = sources.start_waits_for()
    return "the owners have not been listed yet" + (f"; {step} has failed, and is tried again" if step else "")


def _check_tasks(sources: RuntimeSources) -> CheckReason:
    if sources.is_stopping():
        return None
    return _format_names("ended, and nobody asked for it", (task.get_name() for task in sources.tasks() if task.done()))


def _check_synced(informers: Iterable[ObservedInformer]) -> CheckReason:
    return _format_names(
        "not synced", (str(each.gvk) for each in informers if not each.synced and not _is_absent(each))
    )


def _check_freshness(informers: Iterable[ObservedInformer], bound_seconds: float) -> CheckReason:
    ages = ((each, each.age_seconds) for each in informers if each.synced)
    return _format_names(
        f"older than {bound_seconds:g} s",
        (f"{each.gvk} ({age:.0f} s)" for each, age in ages if age is not None and age > bound_seconds),
    )


def _is_absent(informer: ObservedInformer) -> bool:
    """Tell whether the kind is not served: there is nothing to be synced with, and it may come at any time."""
    return isinstance(informer.last_error, KindNotServedError)


def _format_names(what: str, names: Iterable[str]) -> CheckReason:
    found = sorted(names)
    if not found:
        return None
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    return f"{what}: {', '.join(found[:_MAX_NAMED])}{more}"


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
