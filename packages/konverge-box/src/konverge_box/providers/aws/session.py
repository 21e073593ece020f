"""Clients of AWS, or of what speaks like it, and their calls off the event loop.

boto3, since it is the one client that its makers keep; it blocks, so it runs in threads of its own. The asynchronous
clients built on botocore pin one version of it each, which an operator shares with everything else that it installs. A
request that runs in a thread cannot be cancelled. It ends by its own time-outs, and is waited for: nothing may still be
made after its owner has been told that it is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeAlias, TypeVar

import boto3.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from konverge.cancellation import await_shielded
from konverge_box.expressions import Sensitive
from konverge_box.providers.plugin import ProviderError

__all__ = ["OWNER_TAG", "AwsSession", "AwsSettings", "Service", "build_tags", "get_error_code"]

T = TypeVar("T")
Service: TypeAlias = Literal["s3", "sqs"]

OWNER_TAG = "konverge.dev/owner"
"""The tag with the mark of `konverge_box.providers.ownership_marks`."""

_THREADS = 8
_MAX_CLIENTS = 64


class AwsSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How AWS is reached.

    Args:
        region: Where things are, unless their spec says.
        access_key_id: With ``secretAccessKey``, from a Secret. Without them, boto3 looks where it always does: the
            environment, the pod's role.
        secret_access_key: See there.
        session_token: Of temporary credentials.
        endpoint_url: The service's address, where it is not that of AWS.
    """

    region: str
    access_key_id: Sensitive | None = None
    secret_access_key: Sensitive | None = None
    session_token: Sensitive | None = None
    endpoint_url: str = ""


class AwsSession:
    """Makes clients, keeps them, and runs their calls in threads.

    Args:
        connect_seconds: How long a connection may take.
        read_seconds: How long an answer may take.
    """

    def __init__(self, connect_seconds: float = 3.0, read_seconds: float = 10.0) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="konverge-aws")
        self._config = Config(
            connect_timeout=connect_seconds,
            read_timeout=read_seconds,
            retries={"mode": "standard", "total_max_attempts": 2},
        )
        self._clients: dict[tuple[Any, ...], Any] = {}

    async def call(self, settings: AwsSettings, service: Service, region: str, call: Callable[[Any], T]) -> T:
        """Let a function use a client, in a thread; cancelled, it waits for the end of the request.

        Args:
            settings: As whom.
            service: Of which service.
            region: Where; empty for that of the settings.
            call: Gets the client; it should make one request.

        Raises:
            botocore.exceptions.ClientError: The service has refused; `get_error_code` tells why.
            ProviderError: It cannot be reached.
        """
        submitted = self._threads.submit(lambda: call(self._get_client(settings, service, region or settings.region)))
        running = asyncio.wrap_future(submitted)
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            if not submitted.cancel():  # it has begun
                await await_shielded(asyncio.wait({running}))
                running.exception()  # else its failure would be reported as one that nobody asked for
            raise
        try:
            return running.result()
        except BotoCoreError as error:
            raise ProviderError(f"{service}: {error}") from None

    def close(self) -> None:
        """Start nothing more; what runs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._clients.clear()

    def _get_client(self, settings: AwsSettings, service: Service, region: str) -> Any:
        secrets = (settings.access_key_id, settings.secret_access_key, settings.session_token)
        # By their values: after a rotation it is another client.
        credentials = tuple(None if each is None else str(each.reveal()) for each in secrets)
        key = (service, region, settings.endpoint_url, *credentials)
        client = self._clients.get(key)
        if client is None:
            names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
            # A session of its own: the shared one may not be used by several threads.
            client = boto3.session.Session(region_name=region, **dict(zip(names, credentials, strict=True))).client(
                service, endpoint_url=settings.endpoint_url or None, config=self._config
            )
            if len(self._clients) >= _MAX_CLIENTS:
                self._clients.clear()
            self._clients[key] = client
        return client


def get_error_code(error: ClientError) -> str:
    """The service's word for what is wrong."""
    return str(error.response.get("Error", {}).get("Code", ""))


def build_tags(declared: Mapping[str, str], mark: str) -> dict[str, str]:
    """The tags of a thing: those of the file, and its mark."""
    return {**declared, OWNER_TAG: mark}
