from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.errors import ApiError, BadRequestError
from konverge_cluster._internal.embedded.protobuf import MEDIA_TYPE, decode_protobuf
from konverge_cluster._internal.embedded.request_bodies import (
    MAXIMUM_BYTES,
    check_size,
    decode_json,
    decode_yaml,
    find_duplicate_keys,
)
from tests.cluster.embedded.request_client import RequestClient


def test_a_body_of_the_limit_is_fine_and_one_byte_more_is_not() -> None:
    check_size(b"x" * MAXIMUM_BYTES)

    with pytest.raises(ApiError) as caught:
        check_size(b"x" * (MAXIMUM_BYTES + 1))
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize("body", [b"", b"{", b'{"a":}', b"nope", b'{"a":NaN}', b"\xff", b'{"a":"\xff"}'])
def test_broken_json_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError, match="json parse error"):
        decode_json(body)


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (b'{"a":1,"b":2}', []),
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"x":{"a":1,"a":2,"a":3}}', ["x.a", "x.a"]),
        (b'{"l":[{"a":1},{"a":1,"a":2}]}', ["l[1].a"]),
    ],
)
def test_doubled_keys_are_found(body: bytes, paths: list[str]) -> None:
    assert find_duplicate_keys(body) == paths


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2026-01-31", {"a": "2026-01-31"}),
        ("a: 2026-01-31T08:00:00Z", {"a": "2026-01-31T08:00:00Z"}),
        ("a: =", {"a": "="}),
        ("2: x\ntrue: v\n1.5: w", {"2": "x", "true": "v", "1.5": "w"}),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("a: 010\nb: 1e3\nc: '1'", {"a": 8, "b": 1000, "c": "1"}),
    ],
)
def test_yaml_becomes_what_json_would_be(text: str, value: Any) -> None:
    assert decode_yaml(text.encode()) == value


@pytest.mark.parametrize(
    "text", ["a: [", "a: !!python/object:os.system {}", "a: .nan", "a: .inf", "? [a]\n: b", "~: b", "a: !!binary eA=="]
)
def test_yaml_that_json_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError, match="error converting YAML to JSON"):
        decode_yaml(text.encode())


def test_yaml_that_unfolds_into_too_much_is_refused() -> None:
    levels = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(BadRequestError, match="more than 500000 values"):
        decode_yaml("\n".join(levels).encode())


def test_yaml_whose_merge_keys_unfold_into_too_much_is_refused() -> None:
    levels = ["l0: &l0 {x: 1}"]
    levels += [f"l{n}: &l{n} {{<<: [{', '.join([f'*l{n - 1}'] * 20)}]}}" for n in range(1, 12)]

    with pytest.raises(BadRequestError, match="more than 500000 values"):
        decode_yaml("\n".join(levels).encode())


@pytest.mark.parametrize("depth", [300, 3_000, 200_000])
def test_yaml_that_nests_too_deeply_is_refused(depth: int) -> None:
    with pytest.raises(BadRequestError, match="nests deeper than"):
        decode_yaml(b"[" * depth + b"]" * depth)


@pytest.mark.parametrize("text", [b"a: &a [*a]", b"a: &a [*a, *a]", b"a: &a {<<: *a}", b"? &a [*a]\n: b"])
def test_yaml_that_refers_to_itself_is_refused(text: bytes) -> None:
    with pytest.raises(BadRequestError):
        decode_yaml(text)


# Handwritten protobuf: tag, length, content.


def field(number: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def wrap_in_envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    type_meta = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, type_meta) + field(2, raw)


def entry(key: str, value: bytes) -> bytes:
    return field(1, key.encode()) + field(2, value)


METADATA = field(1, field(1, b"thing") + field(8, field(1, 1767254400)) + field(11, entry("app", b"web")))


def test_an_object_in_protobuf_becomes_its_json() -> None:
    decoded = decode_protobuf(wrap_in_envelope("v1", "Secret", METADATA + field(2, entry("a", b"\x00\xff"))))

    assert decoded == {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": "thing", "creationTimestamp": "2026-01-01T08:00:00Z", "labels": {"app": "web"}},
        "data": {"a": base64.b64encode(b"\x00\xff").decode()},
    }


def test_fields_that_json_inlines_are_inlined() -> None:
    volume = field(1, b"data") + field(2, field(19, field(1, field(1, b"settings"))))

    decoded = decode_protobuf(wrap_in_envelope("v1", "Pod", METADATA + field(2, field(1, volume))))

    assert decoded["spec"]["volumes"] == [{"name": "data", "configMap": {"name": "settings"}}]


@pytest.mark.parametrize(
    ("target_port", "value"),
    [(field(1, 0) + field(2, 8080), 8080), (field(1, 1) + field(3, b"http"), "http")],
)
def test_a_port_is_a_number_or_a_name(target_port: bytes, value: Any) -> None:
    port = field(3, 80) + field(4, target_port)

    decoded = decode_protobuf(wrap_in_envelope("v1", "Service", METADATA + field(2, field(1, port))))

    assert decoded["spec"]["ports"] == [{"port": 80, "targetPort": value}]


def test_negative_numbers_and_booleans() -> None:
    decoded = decode_protobuf(
        wrap_in_envelope("apps/v1", "Deployment", METADATA + field(2, field(1, -3) + field(7, 1)))
    )

    assert decoded["spec"] == {"replicas": -3, "paused": True}


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"k8s\x00\xff",
        b"k8s\x00" + field(2, b"\x0a\xff"),
        wrap_in_envelope("v1", "Nothing", b""),
        wrap_in_envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", b""),
        wrap_in_envelope("v1", "ConfigMap", b"\x0a\x7f"),
        wrap_in_envelope("v1", "ConfigMap", varint(1 << 3 | 3)),
        wrap_in_envelope("v1", "ConfigMap", field(1, 5)),
        wrap_in_envelope("v1", "ConfigMap", varint(9 << 3) + b"\xff" * 11),
        wrap_in_envelope("v1", "ConfigMap", field(1, field(1, b"\xff"))),
        wrap_in_envelope("v1", "Pod", METADATA + field(2, field(4, b"x"))),
    ],
)
def test_broken_protobuf_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        decode_protobuf(body)


@given(raw=st.binary(max_size=60))
def test_any_bytes_are_an_object_or_a_bad_request(raw: bytes) -> None:
    body = wrap_in_envelope("v1", "Pod", raw)

    try:
        decoded = decode_protobuf(body)
    except BadRequestError:
        decoded = {"kind": "Pod"}

    assert decoded["kind"] == "Pod"


def test_unknown_fields_are_skipped() -> None:
    unknown = varint(99 << 3 | 5) + struct.pack("<f", 1.0) + varint(98 << 3 | 1) + struct.pack("<d", 1.0)

    assert decode_protobuf(wrap_in_envelope("v1", "ConfigMap", unknown)) == {"kind": "ConfigMap", "apiVersion": "v1"}


def test_a_typed_client_creates_in_protobuf(ask: RequestClient) -> None:
    body = wrap_in_envelope("v1", "Namespace", field(1, field(1, b"team") + field(8, b"")))

    created = ask("POST", "/api/v1/namespaces", body, content_type=MEDIA_TYPE)

    assert (created.status, created.body["metadata"]["name"]) == (201, "team")
