"""The provider ``aws``: S3 buckets and SQS queues, of AWS or of a compatible service (``endpointUrl``).

A tag of each item contains its owner's UID. Buckets are retained by default, because their data cannot be restored. A
queue is deleted with its owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from botocore.exceptions import ClientError
from msgspec import Struct

from konverge_box._internal.providers.aws.buckets import Buckets, BucketSpec
from konverge_box._internal.providers.aws.queues import DeadLetter, Queues, QueueSpec
from konverge_box._internal.providers.aws.session import AwsSession, AwsSettings, get_error_code
from konverge_box._internal.providers.plugin import ItemKind, ItemRequest, ItemResult, ProviderError, ReconcileRequest

__all__ = ["Aws", "AwsSettings", "BucketSpec", "DeadLetter", "QueueSpec"]


class Aws:
    """The provider of AWS items.

    Args:
        connect_seconds: The time limit of a connection attempt.
        read_seconds: The time limit of a response.
    """

    name = "aws"
    settings: type[Struct] = AwsSettings
    kinds: Mapping[str, ItemKind] = {
        "Bucket": ItemKind(BucketSpec, identity=("region",), on_delete="retain"),
        "Queue": ItemKind(QueueSpec, identity=("region",)),
    }

    def __init__(self, connect_seconds: float = 3.0, read_seconds: float = 10.0) -> None:
        self._session = AwsSession(connect_seconds, read_seconds)
        self._kinds: dict[str, Buckets | Queues] = {"Bucket": Buckets(self._session), "Queue": Queues(self._session)}

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        """Reconcile the item and return its state."""
        try:
            return await self._kinds[request.kind].reconcile(request)
        except ClientError as error:
            raise _to_provider_error(error) from None

    async def delete(self, request: ItemRequest) -> None:
        """Delete or release the item."""
        try:
            await self._kinds[request.kind].delete(request)
        except ClientError as error:
            raise _to_provider_error(error) from None

    async def close(self) -> None:
        """Close the session; no further request starts."""
        self._session.close()


def _to_provider_error(error: ClientError) -> ProviderError:
    message = error.response.get("Error", {}).get("Message") or "no message"
    return ProviderError(f"{error.operation_name} was rejected: {get_error_code(error)}, {message}")
