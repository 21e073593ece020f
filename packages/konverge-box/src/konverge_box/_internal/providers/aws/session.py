"""The clients of AWS or of compatible services, and their calls in threads.

boto3 is the only client that AWS maintains. It blocks, so it runs in separate threads. Each asynchronous client on top
of botocore pins one version of it, which an operator shares with all its other packages. A request in a thread cannot
be cancelled. It ends by its own timeouts, and the session waits for it: no item may be created after the caller has
seen the cancellation.
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

from konverge._internal.cancellation import await_shielded
from konverge_box._internal.expressions import Sensitive
from konverge_box._internal.providers.plugin import ProviderError

__all__ = ["OWNER_TAG", "AwsSession", "AwsSettings", "Service", "build_tags", "get_error_code"]

T = TypeVar("T")
Service: TypeAlias = Literal["s3", "sqs"]

OWNER_TAG = "konverge.dev/owner"
"""The tag with the mark of `providers.ownership_marks`."""

_THREADS = 8
_MAX_CLIENTS = 64


class AwsSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The settings of the provider.

    Args:
        region: The region of items whose spec has none.
        access_key_id: The access key, from a Secret, together with ``secretAccessKey``. Without both, boto3 uses its
            default sources: the environment, the role of the Pod.
        secret_access_key: The secret key, from a Secret, together with ``accessKeyId``.
        session_token: The session token of temporary credentials.
        endpoint_url: The URL of a compatible service; empty for AWS.
    """

    region: str
    access_key_id: Sensitive | None = None
    secret_access_key: Sensitive | None = None
    session_token: Sensitive | None = None
    endpoint_url: str = ""


class AwsSession:
    """The session, which caches clients and runs their calls in threads.

    Args:
        connect_seconds: The time limit of a connection attempt.
        read_seconds: The time limit of a response.
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
        """Call a function with a client in a thread. A cancellation waits for the end of the request.

        Args:
            settings: The settings, including the credentials.
            service: The service of the client.
            region: The region; empty for that of the settings.
            call: The function, which gets the client and should send one request.

        Raises:
            botocore.exceptions.ClientError: The service rejected the request; `get_error_code` returns the reason.
            ProviderError: The service is unreachable.
        """
        submitted = self._threads.submit(lambda: call(self._get_client(settings, service, region or settings.region)))
        running = asyncio.wrap_future(submitted)
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            if not submitted.cancel():  # the request has started
                await await_shielded(asyncio.wait({running}))
                running.exception()  # retrieve the exception, so that asyncio does not log it
            raise
        try:
            return running.result()
        except BotoCoreError as error:
            raise ProviderError(f"{service}: {error}") from None

    def close(self) -> None:
        """Start no further request. Running requests end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._clients.clear()

    def _get_client(self, settings: AwsSettings, service: Service, region: str) -> Any:
        secrets = (settings.access_key_id, settings.secret_access_key, settings.session_token)
        # The key contains the values: after a rotation of the credentials, a new client is created.
        credentials = tuple(None if each is None else str(each.reveal()) for each in secrets)
        key = (service, region, settings.endpoint_url, *credentials)
        client = self._clients.get(key)
        if client is None:
            names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
            # Each client has its own boto3 session: the shared one is not thread-safe.
            client = boto3.session.Session(region_name=region, **dict(zip(names, credentials, strict=True))).client(
                service, endpoint_url=settings.endpoint_url or None, config=self._config
            )
            if len(self._clients) >= _MAX_CLIENTS:
                self._clients.clear()
            self._clients[key] = client
        return client


def get_error_code(error: ClientError) -> str:
    """Return the error code of the service."""
    return str(error.response.get("Error", {}).get("Code", ""))


def build_tags(declared: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return the tags of an item: those of the file, and its mark."""
    return {**declared, OWNER_TAG: mark}
