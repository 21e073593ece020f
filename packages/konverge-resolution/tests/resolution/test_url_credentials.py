"""Credentials in addresses: refused before anything of them is kept, with where they belong; and never shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge_resolution import FetchRequest, Reason, Reference, ResolutionError, ResolvedContent
from konverge_resolution._internal.lock_file import LockFile
from konverge_resolution._internal.locked_resolver import LockedResolver
from konverge_resolution._internal.reference_parsing import parse_reference
from konverge_resolution._internal.url_credentials import find_credential
from tests.resolution.fake_resolver import FakeResolver
from tests.resolution.fake_source import WEB, build_engine

pytestmark = pytest.mark.anyio

VALUE = "hunter2hunter2"
WITH_CREDENTIAL = [
    *(
        f"https://boxes.example/a.yaml?ref=main&{name}={VALUE}"
        for name in (
            "token",
            "access_token",
            "private_token",
            "Private-Token",
            "id_token",
            "job.token",
            "sig",
            "signature",
            "X-Amz-Signature",
            "x-amz-security-token",
            "X-Amz-Credential",
            "X-Goog-Signature",
            "AWSAccessKeyId",
            "api_key",
            "apikey",
            "subscription-key",
            "client_secret",
            "password",
            "passwd",
            "auth",
            "jwt",
            "code",
            "%74oken",
            "t%6Fken",
        )
    ),
    f"https://boxes.example/a.yaml?a=b;token={VALUE}",
    f"https://boxes.example/a.yaml#access_token={VALUE}",
    *(
        f"https://boxes.example/a.yaml?{name}={VALUE}"
        for name in (
            "auth_key",
            "X-Auth",
            "license_key",
            "session",
            "PHPSESSID",
            "otp",
            "creds",
            "token2",
            "password[0]",
        )
    ),
    f"https://boxes.example/a.yaml;jsessionid={VALUE}",
    f"https://boxes.example/a;token={VALUE}/b.yaml",
    f"https://boxes.example/a?from=https://me:{VALUE}@other.example/a.yaml",
    f"https://boxes.example/a?from=https%3A%2F%2Fother.example%2Fa%3Ftoken%3D{VALUE}",
    f"https://{VALUE}@boxes.example/a.yaml",
    f"https://me:{VALUE}@boxes.example/a.yaml",
    f"HTTPS://me:{VALUE}@boxes.example/a.yaml",
    f"git+https://{VALUE}@boxes.example/a",
    f"ssh://git:{VALUE}@boxes.example/a",
    f"redis://:{VALUE}@boxes.example/0",
]
WITHOUT = [
    "https://boxes.example/a.yaml",
    "https://boxes.example/token/sig?ref=main&raw=true&path=/a.yaml&version=GBmain&at=refs/heads/x&tokens=3",
    "https://boxes.example/a.yaml?token=",
    "https://boxes.example/a;v=1/b.yaml?from=https://other.example/a.yaml?ref=main",
    "https://boxes.example/a?u=" + "https://boxes.example/a?u=" * 1000,
    "https://boxes.example/a@b?secretary=ada&design=1&author=me&encoded=1",
    "ssh://git@boxes.example/a",
    "git@boxes.example:a",
    "registry.example/team/boxes@sha256:aa",
    "token=hunter2",
    "https://[",
]


@pytest.mark.parametrize("address", WITH_CREDENTIAL)
@pytest.mark.parametrize("form", [str, lambda text: [text], lambda text: {"a": text}, lambda text: {text: "a"}])
async def test_a_reference_with_a_credential_in_an_address_is_refused_and_nothing_of_it_is_kept(
    address: str, form: Any
) -> None:
    shelf = FakeResolver()
    reference = Reference("shelf", {"url": form(address)})
    source = LockedResolver(build_engine(shelf), LockFile(), may_add=True)
    with pytest.raises(ResolutionError) as caught:
        await source.resolve(reference, WEB)
    assert caught.value.reason is Reason.INVALID_PARAMETERS
    assert "parameter 'url': expected an address without a credential, found " in caught.value.message
    assert "; put it into a Secret, named by a parameter of resolver 'shelf'" in caught.value.message
    assert VALUE not in caught.value.message
    assert (shelf.calls, len(source.lock)) == ([], 0)
    with pytest.raises(ResolutionError, match="expected an address without a credential") as caught:
        parse_reference({"resolver": "shelf", "params": {"url": form(address)}})
    assert VALUE not in caught.value.message


@pytest.mark.parametrize("recorded", ["from", "to"])
async def test_a_resolver_that_records_a_credential_has_failed_and_it_is_not_shown(recorded: str) -> None:
    class Signing(FakeResolver):
        async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
            signed = f"{fetch.params['url']}?X-Amz-Signature={VALUE}"
            return await super().resolve(replace(fetch, params={**fetch.params, recorded: signed}))

    with pytest.raises(ResolutionError) as caught:
        await build_engine(Signing()).resolve(Reference("shelf", {"url": "https://boxes.example/a"}), WEB)
    message = "resolver 'shelf' failed: it records an address with a credential, 'X-Amz-Signature' in its query"
    assert (caught.value.reason, caught.value.message) == (Reason.INTERNAL, message)


@pytest.mark.parametrize("address", WITHOUT)
def test_other_addresses_are_what_they_are(address: str) -> None:
    assert find_credential(address) == ""
    Reference("shelf", {"url": address}).check()


async def test_a_lock_file_from_before_is_not_asked_for_a_credential_that_is_in_it(tmp_path: Path) -> None:
    text = (
        LockFile()
        .serialize()
        .replace(
            "entries: []",
            f"""entries:
- digest: sha256:{"a" * 64}
  params: {{url: "https://boxes.example/a?token={VALUE}"}}
  resolver: shelf
  source: {{digest: {{}}, uri: "https://boxes.example/a"}}""",
        )
    )
    lock = LockFile.parse(text.encode(), file="box.lock.yaml")
    (entry,) = lock
    with pytest.raises(ResolutionError) as caught:
        await LockedResolver(build_engine(FakeResolver()), lock).resolve(entry.reference, WEB)
    assert "'token' in its query" in caught.value.message
    assert VALUE not in caught.value.message
