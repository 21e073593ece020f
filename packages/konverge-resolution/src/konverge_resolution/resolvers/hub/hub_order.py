"""Which hubs are asked, in which order, and when the next one is.

Hubs stand in a list. One that cannot be asked is passed over; one that answers has the last word, also when it says
that there is no such version: a hub that is down must not decide which version one gets, one that is up may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from konverge_resolution.errors import ResolutionError
from konverge_resolution.http_failures import build_http_client
from konverge_resolution.network import HttpSession, InvalidRequestError, parse_url
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Parameters
from konverge_resolution.resolved_content import ResolvedContent
from konverge_resolution.resolver import FetchRequest
from konverge_resolution.resolver_settings import as_list

__all__ = ["list_hubs", "normalize_hub_url", "resolve_in_order"]

_MAX_HUBS = 10
_FAILOVER_REASONS = frozenset({Reason.UNREACHABLE, Reason.RATE_LIMITED, Reason.TIMED_OUT})


def list_hubs(params: Parameters, settings: Mapping[str, str]) -> Sequence[str]:
    """The hubs that are asked, in order.

    Args:
        params: With the one that the reference names, or the type of those of the settings.
        settings: The operator's lists.

    Raises:
        ResolutionError: ``InvalidConfiguration``: the operator's list is empty, or has what is no URL.
    """
    if "url" in params:
        return (str(params["url"]),)
    setting = f"{params['type']}-hub-urls"
    # A YAML list, as Tekton has it, is one of ours with a dash before each line.
    listed = [each.removeprefix("- ").strip().strip("'\"") for each in as_list(settings.get(setting, ""))]
    if not listed:
        message = f"setting {setting!r}: expected the address of a hub, found none; give one with parameter 'url'"
        raise ResolutionError(Reason.INVALID_CONFIGURATION, message)
    try:
        return tuple(dict.fromkeys(normalize_hub_url(each) for each in listed))[:_MAX_HUBS]
    except InvalidRequestError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting {setting!r}: a URL {error.problem}") from None


async def resolve_in_order(
    fetch: FetchRequest, resolve_on_hub: Callable[[HttpSession, str], Awaitable[ResolvedContent]]
) -> ResolvedContent:
    """What the first hub says that can be asked at all.

    Args:
        fetch: The resolution, whose time the hubs share.
        resolve_on_hub: Asks one hub, by its URL.

    Raises:
        ResolutionError: What the first one says that has no such definition; or none can be asked.
    """
    hubs = list_hubs(fetch.params, fetch.settings)
    failures: list[ResolutionError] = []
    # One that hangs must leave time for the others; the last tenth is for whoever asked to be told.
    share = fetch.seconds * 0.9 / len(hubs) if len(hubs) > 1 else None
    async with build_http_client(fetch).session() as session:
        for hub in hubs:
            try:
                async with asyncio.timeout(share):
                    return await resolve_on_hub(session, hub)
            except TimeoutError:
                failures.append(ResolutionError(Reason.TIMED_OUT, f"hub {hub} did not answer within {share:g} s"))
            except ResolutionError as error:
                if error.reason not in _FAILOVER_REASONS:
                    raise
                failures.append(error)
    raise _combine_errors(failures)


def _combine_errors(failures: Sequence[ResolutionError]) -> ResolutionError:
    if len(failures) == 1:
        return failures[0]
    reasons = {failure.reason for failure in failures}
    pauses = [each.retry_after_seconds for each in failures if each.retry_after_seconds is not None]
    return ResolutionError(
        reasons.pop() if len(reasons) == 1 else Reason.UNREACHABLE,
        f"none of {len(failures)} hubs could be asked: " + "; ".join(failure.message for failure in failures),
        retry_after_seconds=min(pauses, default=None),
    )


def normalize_hub_url(text: str) -> str:
    """The URL of a hub in its one spelling.

    Raises:
        InvalidRequestError: It is none, or has a query.
    """
    url = parse_url(text)
    if url.query_string:
        raise InvalidRequestError("the URL", "cannot be used: expected no query")
    return str(url).rstrip("/")
