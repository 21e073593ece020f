"""Functions for encodings, hashes, names and random values."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
from typing import Any, NoReturn

from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge._internal.primitives.generated_values import draw_numbers
from konverge.clock import Entropy
from konverge_box._internal.expressions.functions.function import build_group
from konverge_box._internal.expressions.functions.strings import MAX_TEXT_LENGTH
from konverge_box._internal.expressions.values import MAX_INTEGER

__all__ = ["DATA", "RANDOM", "to_json"]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_MAX_NAME_LENGTH = 63
_HASH_LENGTH = 8
_MAX_RANDOM = 4096
_NO_NAME = re.compile("[^a-z0-9]+")


def to_base64(text: str) -> str:
    """Encode a string in base64, as in a Secret's data: `toBase64("pass")` is `cGFzcw==`."""
    return base64.b64encode(text.encode()).decode()


def from_base64(text: str) -> str:
    """Decode a base64 string; the decoded bytes must be UTF-8."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("expected base64 of UTF-8 text") from None


def to_json(value: Any) -> str:
    """Convert to JSON on one line with sorted keys: equal values give equal strings."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(f"expected at most {MAX_TEXT_LENGTH} characters, found {len(text)}")
    return text


def from_json(text: str) -> Any:
    """Parse a JSON string: `fromJSON(external.config.body).replicas`."""
    try:
        value = json.loads(text, parse_constant=_reject_constant, parse_int=_parse_integer, parse_float=_parse_number)
        if "\\u" in text:  # an escaped lone surrogate cannot be encoded as UTF-8
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    except ValueError as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"expected valid JSON{place}") from None


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
    """Return the SHA-256 hash of the string, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def sha512sum(text: str) -> str:
    """Return the SHA-512 hash of the string, in hexadecimal."""
    return hashlib.sha512(text.encode()).hexdigest()


def short_hash(text: str, length: int = _HASH_LENGTH) -> str:
    """Return the first characters (default: 8) of the SHA-256 hash, for names that change with their content."""
    if not 4 <= length <= 64:
        raise ValueError(f"expected a length of 4 to 64, found {length}")
    return sha256sum(text)[:length]


def slugify(text: str) -> str:
    """Convert to lowercase letters, digits and dashes, at most 63: `slugify("Ann's Blog!")` is `ann-s-blog`."""
    return _NO_NAME.sub("-", text.lower()).strip("-")[:_MAX_NAME_LENGTH].strip("-")


def truncate_name(name: str, length: int = _MAX_NAME_LENGTH) -> str:
    """Shorten a name to this length (default: 63); a shortened name ends with a hash of the whole name."""
    if not 2 * _HASH_LENGTH <= length <= 253:
        raise ValueError(f"expected a length of {2 * _HASH_LENGTH} to 253, found {length}")
    if len(name) <= length:
        return name
    return f"{name[: length - _HASH_LENGTH - 1].rstrip('-.')}-{short_hash(name)}"


def is_dns1123_label(text: str) -> bool:
    """Tell whether it is a DNS label, as names of Namespaces: lowercase letters, digits, dashes, at most 63."""
    return not validate_dns_label(text)


def is_dns1123_subdomain(text: str) -> bool:
    """Tell whether it is a DNS subdomain, as most names: labels separated by dots, at most 253 characters."""
    return not validate_dns_subdomain(text)


def random_alphanumeric(entropy: Entropy, length: int) -> str:
    """Return this many random letters and digits. They differ in each evaluation: use them in a Secret with `once`."""
    return "".join(_LETTERS[number] for number in _draw_numbers(entropy, length, len(_LETTERS)))


def random_hex(entropy: Entropy, length: int) -> str:
    """Return this many random hexadecimal digits. They differ in each evaluation."""
    return "".join(f"{number:x}" for number in _draw_numbers(entropy, length, 16))


def random_base64(entropy: Entropy, size: int) -> str:
    """Return this many random bytes in base64. They differ in each evaluation."""
    return base64.b64encode(bytes(_draw_numbers(entropy, size, 256))).decode()


def _draw_numbers(entropy: Entropy, count: int, below: int) -> list[int]:
    if not 1 <= count <= _MAX_RANDOM:
        raise ValueError(f"expected a length of 1 to {_MAX_RANDOM}, found {count}")
    return draw_numbers(entropy, count, below)


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
    "The result is treated as a secret and masked in all output.",
    random_alphanumeric,
    random_hex,
    random_base64,
)
