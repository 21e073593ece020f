"""The provider ``aws`` against moto's server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from konverge.clock import SystemEntropy
from konverge_box._internal.providers.aws import Aws, AwsSettings, BucketSpec, DeadLetter, QueueSpec
from konverge_box._internal.providers.aws.buckets import Buckets
from konverge_box._internal.providers.aws.session import AwsSession
from konverge_box._internal.testing import (
    PROVIDER_CASES,
    ProviderCase,
    ProviderSubject,
    stops_when_cancelled,
)
from konverge_box.expressions import Sensitive
from konverge_box.providers import ForeignError, ProviderError

pytestmark = pytest.mark.anyio

REGION = "eu-central-1"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class Account:
    """The account as its administrator sees it. Its synchronous requests are fast."""

    def __init__(self, endpoint: str) -> None:
        keys = {"aws_access_key_id": "admin", "aws_secret_access_key": "admin"}
        session = boto3.session.Session(region_name=REGION, **keys)
        self.s3 = session.client("s3", endpoint_url=endpoint)
        self.sqs = session.client("sqs", endpoint_url=endpoint)
        self.settings = settings_for(endpoint)

    def bucket(self, name: str) -> Any:
        if name not in {each["Name"] for each in self.s3.list_buckets()["Buckets"]}:
            return None
        return {
            "versioning": self.s3.get_bucket_versioning(Bucket=name).get("Status", "Suspended"),
            "tags": self._query(lambda: self.s3.get_bucket_tagging(Bucket=name)["TagSet"]),
            "encryption": self._query(
                lambda: self.s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"]
            ),
            "public": self._query(
                lambda: self.s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"]
            ),
        }

    def queue(self, name: str) -> Any:
        for url in self.sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", []):
            if url.endswith(f"/{name}"):
                found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
                tags = self.sqs.list_queue_tags(QueueUrl=url).get("Tags")
                return [found | {"CreatedTimestamp": "", "LastModifiedTimestamp": ""}, tags]
        return None

    def _query(self, ask: Any) -> Any:
        try:
            return ask()
        except self.s3.exceptions.ClientError as error:
            return error.response["Error"]["Code"]


def settings_for(endpoint: str) -> AwsSettings:
    return AwsSettings(
        region=REGION,
        access_key_id=Sensitive("an-access-key"),
        secret_access_key=Sensitive("a-secret-key"),
        endpoint_url=endpoint,
    )


@pytest.fixture(scope="module")
def account(endpoint: str) -> Account:
    return Account(endpoint)


@pytest.fixture
async def aws() -> AsyncIterator[Aws]:
    provider = Aws()
    yield provider
    await provider.close()


@pytest.fixture
async def silent() -> AsyncIterator[AwsSettings]:
    """Start a service that accepts connections and never responds."""
    held: list[asyncio.StreamWriter] = []
    listening = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    yield settings_for(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    for writer in held:
        writer.close()
    listening.close()


def name_of(what: str) -> str:
    return f"{what}-{SystemEntropy().name_suffix(8)}"


def bucket(aws: Aws, account: Account, name: str, **more: Any) -> ProviderSubject:
    async def look() -> Any:
        return account.bucket(name)

    changed = BucketSpec(versioning=True, encryption="aws:kms", block_public_access=False, tags={"team": "two"})
    given = {"spec": BucketSpec(tags={"team": "one"}), "changed": changed, **more}
    return ProviderSubject(
        provider=aws, kind="Bucket", name=name, settings=account.settings, look=look, **given
    )  # fmt: skip


def queue(aws: Aws, account: Account, name: str, **more: Any) -> ProviderSubject:
    async def look() -> Any:
        return account.queue(name)

    changed = QueueSpec(visibility_timeout_seconds=5, delay_seconds=1, tags={"team": "two"})
    given = {"spec": QueueSpec(tags={"stage": "one"}), "changed": changed, **more}
    return ProviderSubject(provider=aws, kind="Queue", name=name, settings=account.settings, look=look, **given)


@pytest.mark.slow
@pytest.mark.parametrize("case", PROVIDER_CASES, ids=lambda case: case.__name__)
async def test_buckets_keep_the_rules_of_providers(case: ProviderCase, aws: Aws, account: Account) -> None:
    name = name_of("bucket")

    async def make_foreign() -> None:
        account.s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})

    await case(bucket(aws, account, name, make_foreign=make_foreign))


@pytest.mark.slow
@pytest.mark.parametrize("case", PROVIDER_CASES, ids=lambda case: case.__name__)
async def test_queues_keep_the_rules_of_providers(case: ProviderCase, aws: Aws, account: Account) -> None:
    name = name_of("queue")

    async def make_foreign() -> None:
        account.sqs.create_queue(QueueName=name)

    await case(queue(aws, account, name, make_foreign=make_foreign))


@pytest.mark.slow
async def test_a_bucket_is_private_and_encrypted_unless_said_otherwise(aws: Aws, account: Account) -> None:
    name = name_of("bucket")

    result = await bucket(aws, account, name, spec=BucketSpec()).reconcile()

    found = account.bucket(name)
    assert set(found["public"].values()) == {True}
    assert found["encryption"][0]["ApplyServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert result.outputs == {"bucket": name, "region": REGION, "arn": f"arn:aws:s3:::{name}"}


@pytest.mark.slow
async def test_a_bucket_is_made_with_its_mark_in_one_request(aws: Aws, account: Account) -> None:
    sent: list[str] = []
    subject = bucket(aws, account, name_of("bucket"))
    await subject.delete()  # to create a client
    for client in aws._session._clients.values():
        client.meta.events.register("before-call.s3.CreateBucket", lambda params, **_: sent.append(str(params["body"])))

    await subject.reconcile()

    assert len(sent) == 1
    assert f"<Key>konverge.dev/owner</Key><Value>konverge.dev/owner: uid-1 {_OWNER}</Value>" in sent[0]


@pytest.mark.slow
async def test_the_region_without_a_name_can_be_used(aws: Aws, account: Account) -> None:
    name = name_of("bucket")

    result = await bucket(aws, account, name, spec=BucketSpec(region="us-east-1")).reconcile()

    assert result.outputs["region"] == "us-east-1"


@pytest.mark.slow
async def test_a_bucket_that_is_not_empty_stays_and_says_so(aws: Aws, account: Account) -> None:
    name = name_of("bucket")
    subject = bucket(aws, account, name)
    await subject.reconcile()
    account.s3.put_object(Bucket=name, Key="kept", Body=b"1")

    with pytest.raises(ProviderError, match="is not empty; empty it, or set onDelete: retain"):
        await subject.delete()
    account.s3.delete_object(Bucket=name, Key="kept")
    await subject.delete()
    assert account.bucket(name) is None


@pytest.mark.slow
async def test_messages_that_nobody_can_handle_go_to_the_dead_letter_queue(aws: Aws, account: Account) -> None:
    name, dead = name_of("queue"), name_of("dead")
    spec = QueueSpec(dead_letter=DeadLetter(queue=dead, max_receive_count=3))
    subject = queue(aws, account, name, spec=spec, changed=QueueSpec())
    with pytest.raises(ProviderError, match=f"dead-letter queue {dead} does not exist"):
        await subject.reconcile()
    await queue(aws, account, dead).reconcile()

    for _ in range(2):
        await subject.reconcile()
    policy = json.loads(account.queue(name)[0]["RedrivePolicy"])
    assert (policy["deadLetterTargetArn"].rpartition(":")[2], policy["maxReceiveCount"]) == (dead, 3)

    await subject.reconcile(QueueSpec())
    assert not account.queue(name)[0].get("RedrivePolicy")


@pytest.mark.slow
async def test_a_queue_that_keeps_the_order_is_made_by_its_name(aws: Aws, account: Account) -> None:
    name = f"{name_of('queue')}.fifo"
    subject = queue(aws, account, name, spec=QueueSpec(content_based_deduplication=True))

    for _ in range(2):
        await subject.reconcile()

    found = account.queue(name)[0]
    assert (found["FifoQueue"], found["ContentBasedDeduplication"]) == ("true", "true")


@pytest.mark.slow
async def test_a_settled_bucket_and_queue_are_only_read(aws: Aws, account: Account) -> None:
    one, two = bucket(aws, account, name_of("bucket")), queue(aws, account, name_of("queue"))
    await one.reconcile()
    await two.reconcile()
    asked: list[str] = []
    for client in aws._session._clients.values():
        client.meta.events.register("before-call", lambda model, **_: asked.append(model.name))

    await one.reconcile()
    await two.reconcile()

    assert asked
    assert [name for name in asked if not name.startswith(("Get", "List"))] == []


@pytest.mark.slow
async def test_a_service_that_never_answers_is_given_up(account: Account, silent: AwsSettings) -> None:
    impatient = Aws(connect_seconds=0.2, read_seconds=0.2)
    subject = bucket(impatient, account, name_of("bucket"), unreachable=silent)

    await stops_when_cancelled(subject)


async def test_a_request_that_has_begun_is_waited_for_when_its_call_is_cancelled(aws: Aws, account: Account) -> None:
    begun, ended, released = threading.Event(), threading.Event(), threading.Event()

    def slow(_: Any) -> None:
        begun.set()
        released.wait(10)
        ended.set()

    running = asyncio.create_task(aws._session.call(account.settings, "s3", "", slow))
    await asyncio.to_thread(begun.wait, 10)
    for _ in range(2):
        running.cancel()
        await asyncio.wait({running}, timeout=0.05)
        assert not running.done(), "a started request can still create something"
    released.set()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()


async def test_a_service_that_is_down_is_said(aws: Aws, account: Account) -> None:
    unreachable = settings_for("http://127.0.0.1:1")

    with pytest.raises(ProviderError, match="s3: Could not connect to the endpoint URL"):
        await bucket(aws, account, name_of("bucket")).reconcile(settings=unreachable)


async def test_a_bucket_of_another_account_is_somebody_elses(aws: Aws, account: Account) -> None:
    class Denied(AwsSession):
        async def call(self, *_: Any, **__: Any) -> Any:
            raise account.s3.exceptions.ClientError({"Error": {"Code": "AccessDenied"}}, "GetBucketTagging")

    subject = bucket(aws, account, name_of("bucket"))
    aws._kinds["Bucket"] = Buckets(Denied())

    with pytest.raises(ForeignError):
        await subject.reconcile()
    await subject.delete()


_OWNER = "Owner.conformance.konverge.dev default/conformance"
