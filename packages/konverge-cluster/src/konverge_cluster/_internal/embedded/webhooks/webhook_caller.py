"""Webhook calls over HTTPS (aiohttp), in real and in simulated time."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Sequence
from urllib.parse import urlsplit

import aiohttp

from konverge._internal.aiohttp_errors import FailureKind, classify_error, find_system_error
from konverge.clock import Clock, SimulatedLoop, SystemClock
from konverge_cluster._internal.embedded.request_bodies import MAXIMUM_BYTES
from konverge_cluster._internal.embedded.webhooks.pending_calls import WebhookCall, WebhookReply

__all__ = ["WebhookCaller"]

_HEADERS = {"content-type": "application/json", "accept": "application/json, */*"}
_USER_AGENT = "kube-apiserver-admission"
_MAXIMUM_CONTEXTS = 64
# The real time that a webhook has before simulated time continues: enough for one in this process that only computes. A
# webhook that waits for simulated time needs it to continue.
_HOLD_SECONDS = 0.5


class WebhookCaller:
    """Makes the calls of the server; calls of one request run in parallel.

    Each call has its own connection: the server and its webhooks can be in different event loops, and simulated time
    would close an idle connection between two calls.

    Args:
        clock: The clock, which lets other tasks run.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._real = SystemClock()
        self._contexts: OrderedDict[bytes, ssl.SSLContext] = OrderedDict()

    async def __call__(self, calls: tuple[WebhookCall, ...]) -> tuple[WebhookReply, ...]:
        """Return the replies in the order of the calls; every failure becomes a reply too."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._call(call)) for call in calls]
            if isinstance(asyncio.get_running_loop(), SimulatedLoop):
                await self._hold_simulated_time(tasks)
        return tuple(task.result() for task in tasks)

    async def _hold_simulated_time(self, tasks: Sequence[asyncio.Task[WebhookReply]]) -> None:
        """Prevent simulated time from skipping the responses, since sockets work in real time.

        While a task is ready to run, the loop polls its sockets instead of advancing its clock.
        """
        end = self._real.monotonic() + _HOLD_SECONDS
        while not all(task.done() for task in tasks) and self._real.monotonic() < end:
            await self._clock.sleep(0)

    async def _call(self, call: WebhookCall) -> WebhookReply:
        if call.problem:
            return WebhookReply(problem=call.problem)
        try:
            async with asyncio.timeout(call.timeout_seconds):
                return await self._post(call)
        except TimeoutError:
            return WebhookReply(problem="context deadline exceeded")
        except aiohttp.ClientError as error:
            return WebhookReply(problem=_describe_error(error, call.url))
        except ssl.SSLError as error:
            return WebhookReply(problem=f"unable to load root certificates: {error.reason}")

    async def _post(self, call: WebhookCall) -> WebhookReply:
        connector = aiohttp.TCPConnector(ssl=self._build_ssl_context(call.authority), force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector, headers={"user-agent": _USER_AGENT}) as session,
            session.post(call.url, data=call.body, headers=_HEADERS, allow_redirects=False) as answer,
        ):
            body = await answer.content.read(MAXIMUM_BYTES + 1)
            while len(body) <= MAXIMUM_BYTES and not answer.content.at_eof():
                body += await answer.content.read(MAXIMUM_BYTES + 1 - len(body))
            if len(body) > MAXIMUM_BYTES:
                return WebhookReply(problem=f"the response is larger than {MAXIMUM_BYTES} bytes")
            return WebhookReply(answer.status, body)

    def _build_ssl_context(self, authority: bytes) -> ssl.SSLContext:
        context = self._contexts.pop(authority, None)
        if context is None:
            # Not the default context: newer Python versions check certificates by rules that Go does not have.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            if authority:
                context.load_verify_locations(cadata=authority.decode("ascii", "replace"))
            else:
                context.load_default_certs()
        self._contexts[authority] = context
        if len(self._contexts) > _MAXIMUM_CONTEXTS:
            self._contexts.popitem(last=False)
        return context


def _describe_error(error: aiohttp.ClientError, url: str) -> str:
    """Format an error as a Go client does."""
    system_error = find_system_error(error)
    reason = getattr(system_error, "strerror", None) or str(system_error)
    address = urlsplit(url)
    match classify_error(error):
        case FailureKind.UNTRUSTED_CERTIFICATE:
            cause = getattr(error, "certificate_error", error)
            return f"tls: failed to verify certificate: x509: {_describe_certificate_error(cause)}"
        case FailureKind.TLS:
            return f"tls: {reason}"
        case FailureKind.NAME_RESOLUTION:
            return f"dial tcp: lookup {address.hostname}: no such host"
        case FailureKind.CONNECTION:
            if isinstance(system_error, ConnectionRefusedError):
                reason = "connection refused"
            return f"dial tcp {address.hostname}:{address.port or 443}: connect: {reason.lower()}"
        case FailureKind.DISCONNECTED if isinstance(error, aiohttp.ServerDisconnectedError):
            return "EOF"
    return str(error) or type(error).__name__


def _describe_certificate_error(error: Exception) -> str:
    message = getattr(error, "verify_message", "") or str(error)
    if "self-signed" in message or "self signed" in message or "unable to get local issuer" in message:
        return "certificate signed by unknown authority"
    if "expired" in message or "not yet valid" in message:
        return "certificate has expired or is not yet valid"
    return message
