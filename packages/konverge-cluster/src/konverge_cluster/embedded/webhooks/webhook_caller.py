"""Calling webhooks over HTTPS (aiohttp), in real and in simulated time."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Sequence
from urllib.parse import urlsplit

import aiohttp

from konverge.aiohttp_errors import FailureKind, classify_error, find_system_error
from konverge.clock import Clock, SimulatedLoop, SystemClock
from konverge_cluster.embedded.request_bodies import MAXIMUM_BYTES
from konverge_cluster.embedded.webhooks.pending_calls import WebhookCall, WebhookReply

__all__ = ["WebhookCaller"]

_HEADERS = {"content-type": "application/json", "accept": "application/json, */*"}
_USER_AGENT = "kube-apiserver-admission"
_MAXIMUM_CONTEXTS = 64
# How long, in real time, a webhook may take before simulated time goes on: enough for one in this process that only
# computes. One that waits for simulated time itself needs it to go on.
_HOLD_SECONDS = 0.5


class WebhookCaller:
    """Makes the calls that the server asks for, those of one question side by side.

    Each call has a connection of its own: the server and its webhooks may live in any event loop, and simulated time
    would close a kept one between two calls.

    Args:
        clock: Gives the loop its turns.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._real = SystemClock()
        self._contexts: OrderedDict[bytes, ssl.SSLContext] = OrderedDict()

    async def __call__(self, calls: tuple[WebhookCall, ...]) -> tuple[WebhookReply, ...]:
        """The replies, in the order of the calls; whatever goes wrong is a reply, too."""
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._call(call)) for call in calls]
            if isinstance(asyncio.get_running_loop(), SimulatedLoop):
                await self._hold_simulated_time(asked)
        return tuple(task.result() for task in asked)

    async def _hold_simulated_time(self, asked: Sequence[asyncio.Task[WebhookReply]]) -> None:
        """Keep simulated time from jumping over the answers: sockets answer in real time.

        As long as a task wants its turn, the loop looks at its sockets instead of moving its clock.
        """
        end = self._real.monotonic() + _HOLD_SECONDS
        while not all(task.done() for task in asked) and self._real.monotonic() < end:
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
                return WebhookReply(problem=f"the answer is larger than {MAXIMUM_BYTES} bytes")
            return WebhookReply(answer.status, body)

    def _build_ssl_context(self, authority: bytes) -> ssl.SSLContext:
        context = self._contexts.pop(authority, None)
        if context is None:
            # Not the default context: newer Pythons hold certificates to rules there that Go does not know.
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
    told = getattr(error, "verify_message", "") or str(error)
    if "self-signed" in told or "self signed" in told or "unable to get local issuer" in told:
        return "certificate signed by unknown authority"
    if "expired" in told or "not yet valid" in told:
        return "certificate has expired or is not yet valid"
    return told
