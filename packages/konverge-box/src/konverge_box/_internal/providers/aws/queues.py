"""SQS queues: attributes, a dead-letter queue, tags. One request creates a queue with its mark."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from botocore.exceptions import ClientError
from msgspec import Meta, Struct

from konverge_box._internal.providers.aws.session import OWNER_TAG, AwsSession, build_tags, get_error_code
from konverge_box._internal.providers.ownership_marks import (
    build_owner_mark,
    build_retention_mark,
    is_owned,
    needs_mark,
)
from konverge_box._internal.providers.plugin import ItemRequest, ItemResult, ProviderError, ReconcileRequest

__all__ = ["DeadLetter", "QueueSpec", "Queues"]

T = TypeVar("T")

_ABSENT = frozenset({"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})
_FIFO = ".fifo"


class DeadLetter(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The dead-letter queue, which receives messages that no consumer could process.

    Args:
        queue: The name of a queue of the same region.
        max_receive_count: The number of receives after which a message is moved.
    """

    queue: str
    max_receive_count: Annotated[int, Meta(ge=1, le=1000)] = 5


class QueueSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The desired state of a queue. A queue whose name ends with ``.fifo`` keeps the order of messages.

    Args:
        region: Its region; empty for the region of the settings.
        visibility_timeout_seconds: The time for which a received message is hidden from other consumers.
        message_retention_seconds: The time for which a message is kept.
        delay_seconds: The time for which a new message is hidden.
        receive_wait_seconds: The time for which a receive request waits for a message.
        maximum_message_size: The maximum size of a message in bytes.
        content_based_deduplication: Tells whether a FIFO queue drops messages with equal content.
        dead_letter: The dead-letter queue; null without one.
        tags: All its tags except the mark of its owner.
    """

    region: str = ""
    visibility_timeout_seconds: Annotated[int, Meta(ge=0, le=43200)] = 30
    message_retention_seconds: Annotated[int, Meta(ge=60, le=1209600)] = 345600
    delay_seconds: Annotated[int, Meta(ge=0, le=900)] = 0
    receive_wait_seconds: Annotated[int, Meta(ge=0, le=20)] = 0
    maximum_message_size: Annotated[int, Meta(ge=1024, le=1048576)] = 262144
    content_based_deduplication: bool = False
    dead_letter: DeadLetter | None = None
    tags: dict[str, str] = {}


class Queues:
    """The reconciler of queues.

    Args:
        session: Calls the service.
    """

    def __init__(self, session: AwsSession) -> None:
        self._session = session

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        """Reconcile the queue and return its state."""
        spec: QueueSpec = request.spec
        wanted, tags = _build_attributes(spec), build_tags(spec.tags, build_owner_mark(request.owner))
        if spec.dead_letter is not None:
            arn = await self._read_arn(request, spec.dead_letter.queue)
            wanted["RedrivePolicy"] = json.dumps(
                {"deadLetterTargetArn": arn, "maxReceiveCount": spec.dead_letter.max_receive_count}
            )
        if request.name.endswith(_FIFO):
            wanted["ContentBasedDeduplication"] = str(spec.content_based_deduplication).lower()
        url = await self._find_url(request, request.name)
        if url is None:
            fifo = {"FifoQueue": "true"} if request.name.endswith(_FIFO) else {}
            attributes = wanted | fifo
            made = await self._call(
                request, lambda sqs: sqs.create_queue(QueueName=request.name, Attributes=attributes, tags=tags)
            )
            url = str(made["QueueUrl"])
        found_tags = await self._read_tags(request, url) or {}
        needs_mark(f"queue {request.name}", found_tags.get(OWNER_TAG, ""), request.owner)
        if missing := {key: value for key, value in tags.items() if found_tags.get(key) != value}:
            await self._call(request, lambda sqs: sqs.tag_queue(QueueUrl=url, Tags=missing))
        if extra := sorted(found_tags.keys() - tags.keys()):
            await self._call(request, lambda sqs: sqs.untag_queue(QueueUrl=url, TagKeys=extra))
        found = await self._read_attributes(request, url)
        differing = {key: value for key, value in wanted.items() if not _is_same_attribute(found.get(key, ""), value)}
        if "RedrivePolicy" in found and "RedrivePolicy" not in wanted:
            differing["RedrivePolicy"] = ""
        if differing:
            await self._call(request, lambda sqs: sqs.set_queue_attributes(QueueUrl=url, Attributes=differing))
        return ItemResult({"url": url, "arn": found["QueueArn"], "queue": request.name})

    async def delete(self, request: ItemRequest) -> None:
        """Delete the queue with its messages, or release it."""
        try:
            url = await self._find_url(request, request.name)
            tags = None if url is None else await self._read_tags(request, url)
            if tags is None or not is_owned(tags.get(OWNER_TAG, ""), request.owner):
                return
            if request.on_delete == "retain":
                mark = {OWNER_TAG: build_retention_mark(request.owner)}
                await self._call(request, lambda sqs: sqs.tag_queue(QueueUrl=url, Tags=mark))
            else:
                await self._call(request, lambda sqs: sqs.delete_queue(QueueUrl=url))
        except ClientError as error:
            if get_error_code(error) not in _ABSENT:
                raise

    async def _find_url(self, request: ItemRequest, name: str) -> str | None:
        try:
            return str((await self._call(request, lambda sqs: sqs.get_queue_url(QueueName=name)))["QueueUrl"])
        except ClientError as error:
            if get_error_code(error) in _ABSENT:
                return None
            raise

    async def _read_arn(self, request: ItemRequest, name: str) -> str:
        url = await self._find_url(request, name)
        if url is None:
            raise ProviderError(f"dead-letter queue {name} does not exist; create it first")
        return (await self._read_attributes(request, url))["QueueArn"]

    async def _read_tags(self, request: ItemRequest, url: str) -> dict[str, str]:
        found = await self._call(request, lambda sqs: sqs.list_queue_tags(QueueUrl=url))
        return {key: value for key, value in found.get("Tags", {}).items() if not key.startswith("aws:")}

    async def _read_attributes(self, request: ItemRequest, url: str) -> dict[str, str]:
        response = await self._call(request, lambda sqs: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]))
        attributes: dict[str, str] = response["Attributes"]
        return attributes

    async def _call(self, request: ItemRequest, call: Callable[[Any], T]) -> T:
        return await self._session.call(request.settings, "sqs", str(request.identity["region"]), call)


def _build_attributes(spec: QueueSpec) -> dict[str, str]:
    return {
        "VisibilityTimeout": str(spec.visibility_timeout_seconds),
        "MessageRetentionPeriod": str(spec.message_retention_seconds),
        "DelaySeconds": str(spec.delay_seconds),
        "ReceiveMessageWaitTimeSeconds": str(spec.receive_wait_seconds),
        "MaximumMessageSize": str(spec.maximum_message_size),
    }


def _is_same_attribute(found: str, wanted: str) -> bool:
    """Tell whether two attributes are equal. JSON is compared without its spacing and order."""
    if found == wanted or not found.startswith("{") or not wanted.startswith("{"):
        return found == wanted
    one, other = json.loads(found), json.loads(wanted)
    return {key: str(value) for key, value in one.items()} == {key: str(value) for key, value in other.items()}
