"""Order of hubs, and failover between them.

A hub that cannot be reached is skipped. A hub that responds decides, even if it has no such version: an unreachable hub
must not decide which version is used, a reachable one may.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import build_http_client
from konverge_resolution._internal.network import HttpSession, InvalidRequestError, parse_url
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Parameters
from konverge_resolution._internal.resolved_content import ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest
from konverge_resolution._internal.resolver_settings import as_list

__all__ = ["list_hubs", "normalize_hub_url", "resolve_in_order"]

_MAX_HUBS = 10
_FAILOVER_REASONS = frozenset({Reason.UNREACHABLE, Reason.RATE_LIMITED, Reason.TIMED_OUT})


def list_hubs(params: Parameters, settings: Mapping[str, str]) -> Sequence[str]:
    """Return the hubs in the order of their use.

    Args:
        params: The parameters, with the hub of the reference or the type of the configured hubs.
        settings: The settings with the lists of hubs.

    Raises:
        ResolutionError: ``InvalidConfiguration``: the list of the settings is empty or has an invalid URL.
    """
    if "url" in params:
        return (str(params["url"]),)
    setting = f"{params['type']}-hub-urls"
    # Each line of Tekton's YAML list is a line with a dash.
    listed = [item.removeprefix("- ").strip().strip("'\"") for item in as_list(settings.get(setting, ""))]
    if not listed:
        message = f"setting {setting!r}: expected the address of a hub, found none; set it or parameter 'url'"
        raise ResolutionError(Reason.INVALID_CONFIGURATION, message)
    try:
        return tuple(dict.fromkeys(normalize_hub_url(url) for url in listed))[:_MAX_HUBS]
    except InvalidRequestError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting {setting!r}: a URL {error.problem}") from None


async def resolve_in_order(
    fetch: FetchRequest, resolve_on_hub: Callable[[HttpSession, str], Awaitable[ResolvedContent]]
) -> ResolvedContent:
    """Return the result of the first hub that can be reached.

    Args:
        fetch: The resolution; the hubs share its time.
        resolve_on_hub: Resolves on one hub, by its URL.

    Raises:
        ResolutionError: The first reachable hub has no such definition, or no hub can be reached.
    """
    hubs = list_hubs(fetch.params, fetch.settings)
    failures: list[ResolutionError] = []
    # A slow hub must leave time for the others; the last tenth is for the error message.
    share = fetch.seconds * 0.9 / len(hubs) if len(hubs) > 1 else None
    async with build_http_client(fetch).session() as session:
        for hub in hubs:
            try:
                async with asyncio.timeout(share):
                    return await resolve_on_hub(session, hub)
            except TimeoutError:
                failures.append(ResolutionError(Reason.TIMED_OUT, f"hub {hub} did not respond within {share:g} s"))
            except ResolutionError as error:
                if error.reason not in _FAILOVER_REASONS:
                    raise
                failures.append(error)
    raise _combine_errors(failures)


def _combine_errors(failures: Sequence[ResolutionError]) -> ResolutionError:
    if len(failures) == 1:
        return failures[0]
    reasons = {failure.reason for failure in failures}
    pauses = [failure.retry_after_seconds for failure in failures if failure.retry_after_seconds is not None]
    return ResolutionError(
        reasons.pop() if len(reasons) == 1 else Reason.UNREACHABLE,
        f"none of {len(failures)} hubs can be reached: " + "; ".join(failure.message for failure in failures),
        retry_after_seconds=min(pauses, default=None),
    )


def normalize_hub_url(text: str) -> str:
    """Return the normalized URL of a hub.

    Raises:
        InvalidRequestError: The URL is invalid or has a query.
    """
    url = parse_url(text)
    if url.query_string:
        raise InvalidRequestError("the URL", "cannot be used: expected no query")
    return str(url).rstrip("/")
