"""Functions of encodings, hashes, names, and random values."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from typing import Any, NoReturn

from konverge.clock import Entropy
from konverge.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge_box.expressions.functions.function import build_group
from konverge_box.expressions.functions.strings import MAX_TEXT_LENGTH
from konverge_box.expressions.values import MAX_INTEGER

__all__ = ["DATA", "RANDOM", "to_json"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_MAX_NAME_LENGTH = 63
_HASH_LENGTH = 8
_MAX_RANDOM = 4096
_NO_NAME = re.compile("[^a-z0-9]+")


def to_base64(text: str) -> str:
    """In base64, as a Secret's data: `toBase64("pass")` is `cGFzcw==`."""
    return base64.b64encode(text.encode()).decode()


def from_base64(text: str) -> str:
    """The text that is in base64; what is no UTF-8 inside is an error."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("expected text in base64") from None


def to_json(value: Any) -> str:
    """As JSON on one line, with the keys in order: equal values give equal text."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"comes to more than {MAX_TEXT_LENGTH} letters")
    return text


def from_json(text: str) -> Any:
    """The value of a JSON text: `fromJSON(external.config.body).replicas`."""
    try:
        value = json.loads(text, parse_constant=_reject_constant, parse_int=_parse_integer, parse_float=_parse_number)
        if "\\u" in text:  # half a letter can be escaped, and cannot be sent to anybody
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError:
        raise ValueError("the JSON nests too deeply") from None
    except ValueError as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"expected JSON, found none{place}") from None


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _parse_integer(text: str) -> int:
    value = int(text)
    if not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
        raise ValueError(text)
    return value


def _parse_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def sha256sum(text: str) -> str:
    """The SHA-256 of the text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha512sum(text: str) -> str:
    """The SHA-512 of the text, in hexadecimal."""
    return hashlib.sha512(text.encode()).hexdigest()


def short_hash(text: str, length: int = _HASH_LENGTH) -> str:
    """The first letters of its SHA-256, for names that change with what they stand for; 8 if not said."""
    if not 4 <= length <= 64:
        raise ValueError(f"expected a length of 4 to 64, found {length}")
    return sha256sum(text)[:length]


def slugify(text: str) -> str:
    """Small letters, digits and dashes: `slugify("Ann's Blog!")` is `ann-s-blog`; at most 63 letters."""
    return _NO_NAME.sub("-", text.lower()).strip("-")[:_MAX_NAME_LENGTH].strip("-")


def truncate_name(name: str, length: int = _MAX_NAME_LENGTH) -> str:
    """A name of at most so many letters (63 if not said): one that is cut ends with a hash of all of it."""
    if not 2 * _HASH_LENGTH <= length <= 253:
        raise ValueError(f"expected a length of {2 * _HASH_LENGTH} to 253, found {length}")
    if len(name) <= length:
        return name
    return f"{name[: length - _HASH_LENGTH - 1].rstrip('-.')}-{short_hash(name)}"


def is_dns1123_label(text: str) -> bool:
    """Whether it can be the name of a Namespace or a Service: small letters, digits, dashes, at most 63."""
    return not validate_dns_label(text)


def is_dns1123_subdomain(text: str) -> bool:
    """Whether it can be the name of most objects: labels with dots between them, at most 253 letters."""
    return not validate_dns_subdomain(text)


def random_alphanumeric(entropy: Entropy, length: int) -> str:
    """So many random letters and digits. Anew with each evaluation: for a Secret that is written once."""
    return "".join(_LETTERS[number] for number in _draw_numbers(entropy, length, len(_LETTERS)))


def random_hex(entropy: Entropy, length: int) -> str:
    """So many random hexadecimal digits. Anew with each evaluation."""
    return "".join(f"{number:x}" for number in _draw_numbers(entropy, length, 16))


def random_base64(entropy: Entropy, size: int) -> str:
    """So many random bytes, in base64. Anew with each evaluation."""
    return base64.b64encode(bytes(_draw_numbers(entropy, size, 256))).decode()


def _draw_numbers(entropy: Entropy, count: int, below: int) -> list[int]:
    if not 1 <= count <= _MAX_RANDOM:
        raise ValueError(f"expected a length of 1 to {_MAX_RANDOM}, found {count}")
    return [min(int(entropy.uniform(0, below)), below - 1) for _ in range(count)]


DATA = build_group(
    "Encodings, hashes and names",
    "",
    to_base64,
    from_base64,
    to_json,
    from_json,
    sha256sum,
    sha512sum,
    short_hash,
    slugify,
    truncate_name,
    is_dns1123_label,
    is_dns1123_subdomain,
)
RANDOM = build_group(
    "Random values",
    "Their result counts as a secret: it is masked wherever it is shown.",
    random_alphanumeric,
    random_hex,
    random_base64,
)
