"""S3 buckets: versioning, encryption, public access, tags.

One request creates a bucket with its mark. Services that are compatible with S3 can ignore tags in that request, so
they are written again. After a crash between the two, such a service has a bucket without a mark. It counts as foreign,
and the error names the tag that hands it over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from botocore.exceptions import ClientError
from msgspec import Struct

from konverge_box._internal.providers.aws.session import OWNER_TAG, AwsSession, AwsSettings, build_tags, get_error_code
from konverge_box._internal.providers.ownership_marks import (
    build_owner_mark,
    build_retention_mark,
    is_owned,
    needs_mark,
)
from konverge_box._internal.providers.plugin import (
    ForeignError,
    ItemRequest,
    ItemResult,
    ProviderError,
    ReconcileRequest,
)

__all__ = ["BucketSpec", "Buckets"]

T = TypeVar("T")

_ABSENT = frozenset({"NoSuchBucket", "404"})
_NOTHING_SET = frozenset(
    {"NoSuchTagSet", "ServerSideEncryptionConfigurationNotFoundError", "NoSuchPublicAccessBlockConfiguration"}
)
_BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
_NO_CONSTRAINT = "us-east-1"  # the only region that a request to create a bucket must not contain


class BucketSpec(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The desired state of a bucket.

    Args:
        region: Its region; empty for the region of the settings.
        versioning: Tells whether older versions of objects are kept.
        encryption: The encryption of objects; null keeps the current one.
        kms_key: The key of ``aws:kms``; empty for the default key of the account.
        block_public_access: Tells whether public access is blocked; null keeps the current setting.
        tags: All its tags except the mark of its owner.
    """

    region: str = ""
    versioning: bool = False
    encryption: Literal["AES256", "aws:kms"] | None = "AES256"
    kms_key: str = ""
    block_public_access: bool | None = True
    tags: dict[str, str] = {}


class Buckets:
    """The reconciler of buckets.

    Args:
        session: Calls the service.
    """

    def __init__(self, session: AwsSession) -> None:
        self._session = session

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        """Reconcile the bucket. Public access is blocked before all other settings."""
        spec: BucketSpec = request.spec
        settings: AwsSettings = request.settings
        name, region = request.name, spec.region or settings.region
        wanted = build_tags(spec.tags, build_owner_mark(request.owner))
        tags = await self._read_tags(request)
        if tags is None:
            await self._call(request, lambda s3: _create_bucket(s3, name, region, wanted))
        else:
            needs_mark(f"bucket {name}", tags.get(OWNER_TAG, ""), request.owner)
            if tags != wanted:
                await self._write_tags(request, wanted)
        await self._set_public_access(request, spec)
        await self._set_encryption(request, spec)
        current = await self._call(request, lambda s3: s3.get_bucket_versioning(Bucket=name))
        if (current.get("Status") == "Enabled") != spec.versioning:
            versioning = {"Status": "Enabled" if spec.versioning else "Suspended"}
            await self._call(
                request, lambda s3: s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=versioning)
            )
        partition = await self._call(request, lambda s3: s3.meta.partition)
        return ItemResult({"bucket": name, "region": region, "arn": f"arn:{partition}:s3:::{name}"})

    async def delete(self, request: ItemRequest) -> None:
        """Delete the bucket, which must be empty, or release it."""
        try:
            tags = await self._read_tags(request)
        except ForeignError:
            return
        if tags is None or not is_owned(tags.get(OWNER_TAG, ""), request.owner):
            return
        if request.on_delete == "retain":
            await self._write_tags(request, {**tags, OWNER_TAG: build_retention_mark(request.owner)})
            return
        try:
            await self._call(request, lambda s3: s3.delete_bucket(Bucket=request.name))
        except ClientError as error:
            if get_error_code(error) == "BucketNotEmpty":
                raise ProviderError(f"bucket {request.name} is not empty; empty it, or set onDelete: retain") from None
            if get_error_code(error) not in _ABSENT:
                raise

    async def _read_tags(self, request: ItemRequest) -> dict[str, str] | None:
        """Return the tags except those of AWS itself; None if the bucket does not exist."""
        try:
            found = await self._call(request, lambda s3: s3.get_bucket_tagging(Bucket=request.name))
        except ClientError as error:
            if get_error_code(error) in _ABSENT:
                return None
            if get_error_code(error) in _NOTHING_SET:
                return {}
            if get_error_code(error) in ("AccessDenied", "403"):
                raise ForeignError(f"bucket {request.name}", "", build_retention_mark(request.owner)) from None
            raise
        return {tag["Key"]: tag["Value"] for tag in found["TagSet"] if not tag["Key"].startswith("aws:")}

    async def _write_tags(self, request: ItemRequest, tags: dict[str, str]) -> None:
        tagging = {"TagSet": _to_tag_list(tags)}
        await self._call(request, lambda s3: s3.put_bucket_tagging(Bucket=request.name, Tagging=tagging))

    async def _set_public_access(self, request: ReconcileRequest, spec: BucketSpec) -> None:
        if spec.block_public_access is None:
            return
        wanted = dict.fromkeys(_BLOCKS, spec.block_public_access)
        key = "PublicAccessBlockConfiguration"
        found = await self._read_setting(request, lambda s3: s3.get_public_access_block(Bucket=request.name))
        if {name: (found.get(key) or {}).get(name, False) for name in _BLOCKS} != wanted:
            await self._call(request, lambda s3: s3.put_public_access_block(Bucket=request.name, **{key: wanted}))

    async def _set_encryption(self, request: ReconcileRequest, spec: BucketSpec) -> None:
        if spec.encryption is None:
            return
        wanted = {"SSEAlgorithm": spec.encryption, **({"KMSMasterKeyID": spec.kms_key} if spec.kms_key else {})}
        key = "ServerSideEncryptionConfiguration"
        found = await self._read_setting(request, lambda s3: s3.get_bucket_encryption(Bucket=request.name))
        rules = (found.get(key) or {}).get("Rules") or [{}]
        if rules[0].get("ApplyServerSideEncryptionByDefault") != wanted:
            rule = {"Rules": [{"ApplyServerSideEncryptionByDefault": wanted}]}
            await self._call(request, lambda s3: s3.put_bucket_encryption(Bucket=request.name, **{key: rule}))

    async def _read_setting(self, request: ItemRequest, call: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return a setting; an empty mapping if it is not set."""
        try:
            return await self._call(request, call)
        except ClientError as error:
            if get_error_code(error) in _NOTHING_SET:
                return {}
            raise

    async def _call(self, request: ItemRequest, call: Callable[[Any], T]) -> T:
        return await self._session.call(request.settings, "s3", str(request.identity["region"]), call)


def _create_bucket(s3: Any, name: str, region: str, tags: dict[str, str]) -> None:
    where = {} if region == _NO_CONSTRAINT else {"LocationConstraint": region}
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={**where, "Tags": _to_tag_list(tags)})
    s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": _to_tag_list(tags)})


def _to_tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
