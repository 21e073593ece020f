"""Shapes of values that are made once: passwords, keys, names. Pure, except for the randomness that a caller passes.

`GeneratedSecret` makes a value of a shape when its Secret has none, and keeps the value from then on.
"""

from __future__ import annotations

import base64
import math
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from konverge._internal.kube.name_validation import validate_dns_label
from konverge._internal.primitives.certificate_loading import require_cryptography
from konverge.clock import Entropy

__all__ = ["ALPHANUMERIC", "Generated", "GeneratedValue", "draw_numbers"]

ALPHANUMERIC = string.ascii_uppercase + string.ascii_lowercase + string.digits
"""The characters of a password by default: they need no escape in URLs, shells and configuration files."""

_MAX_LENGTH = 1024
_MIN_PASSWORD_LENGTH = 8
_MIN_KEY_BYTES = 16
_MIN_SUFFIX_LENGTH = 4
_MAX_NAME_LENGTH = 63
_MIN_PASSWORD_BITS = 40.0


@dataclass(frozen=True, slots=True)
class GeneratedValue:
    """The shape of one value; made by the functions of `Generated`.

    Attributes:
        shape: The shape as text, for messages.
        make: Returns a new value.
        matches: Returns True if a value has the shape.
        errors: The validation errors of the shape, one sentence each.
    """

    shape: str
    make: Callable[[Entropy], bytes]
    matches: Callable[[bytes], bool]
    errors: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Generated.{self.shape}"


class Generated:
    """The shapes of generated values.

    ::

        GeneratedSecret(access, values={"password": Generated.password(length=32), "key": Generated.key()})
    """

    @staticmethod
    def password(length: int = 32, *, alphabet: str = ALPHANUMERIC) -> GeneratedValue:
        """Return the shape of a password.

        Args:
            length: The number of characters, 8 to 1024.
            alphabet: The characters to draw from: printable ASCII, each once. Length and alphabet together must give at
                least 40 bits (default: letters and digits).
        """
        errors = [*_validate_length("length", length, _MIN_PASSWORD_LENGTH), *_validate_alphabet(alphabet)]
        if not errors and length * math.log2(len(alphabet)) < _MIN_PASSWORD_BITS:
            errors.append(
                f"alphabet: expected a password of at least {_MIN_PASSWORD_BITS:g} bits, found {length} of "
                f"{len(alphabet)} characters; use more characters"
            )
        shown = f"password(length={length})" if alphabet == ALPHANUMERIC else f"password(length={length}, alphabet=...)"
        allowed = frozenset(str(alphabet).encode(errors="replace"))
        return GeneratedValue(
            shown,
            lambda entropy: "".join(alphabet[index] for index in draw_numbers(entropy, length, len(alphabet))).encode(),
            lambda value: len(value) == length and allowed.issuperset(value),
            tuple(errors),
        )

    @staticmethod
    def hex(length: int = 64) -> GeneratedValue:
        """Return the shape of a token of hexadecimal digits, 32 (16 bytes) to 1024 digits."""
        return GeneratedValue(
            f"hex(length={length})",
            lambda entropy: "".join(f"{number:x}" for number in draw_numbers(entropy, length, 16)).encode(),
            lambda value: len(value) == length and re.fullmatch(rb"[0-9a-f]*", value) is not None,
            tuple(_validate_length("length", length, 2 * _MIN_KEY_BYTES)),
        )

    @staticmethod
    def base64(size: int = 32) -> GeneratedValue:
        """Return the shape of random bytes as base64 text, for programs that read their key as text.

        Args:
            size: The number of bytes before the encoding, 16 to 1024.
        """
        return GeneratedValue(
            f"base64(size={size})",
            lambda entropy: base64.b64encode(bytes(draw_numbers(entropy, size, 256))),
            lambda value: _count_base64_bytes(value) == size,
            tuple(_validate_length("size", size, _MIN_KEY_BYTES)),
        )

    @staticmethod
    def key(size: int = 32) -> GeneratedValue:
        """Return the shape of a symmetric key: 16 to 1024 random bytes. It is not text; no data cell can hold it."""
        return GeneratedValue(
            f"key(size={size})",
            lambda entropy: bytes(draw_numbers(entropy, size, 256)),
            lambda value: len(value) == size,
            tuple(_validate_length("size", size, _MIN_KEY_BYTES)),
        )

    @staticmethod
    def private_key() -> GeneratedValue:
        """Return the shape of a private key in PEM (PKCS #8), for ECDSA with the curve P-256.

        It requires the package ``cryptography`` (``pip install 'konverge[webhooks]'``). The key comes from the
        randomness of the system.
        """
        return GeneratedValue("private_key()", _make_private_key, lambda value: b"PRIVATE KEY-----" in value)

    @staticmethod
    def uuid() -> GeneratedValue:
        """Return the shape of a random UUID (version 4)."""
        return GeneratedValue(
            "uuid()",
            lambda entropy: entropy.uid().encode(),
            lambda value: re.fullmatch(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value) is not None,
        )

    @staticmethod
    def name(prefix: str = "", *, length: int = 8) -> GeneratedValue:
        """Return the shape of a random name: the prefix and lowercase letters and digits, a DNS label.

        Args:
            prefix: The beginning of the name, such as ``"backup-"``.
            length: The number of random characters, 4 or more; the whole name has at most 63.
        """
        errors = list(_validate_length("length", length, _MIN_SUFFIX_LENGTH, _MAX_NAME_LENGTH))
        if not isinstance(prefix, str):
            errors.append(f"prefix: expected a string, found {type(prefix).__name__}")
        elif not errors and validate_dns_label(f"{prefix}{'x' * length}"):
            errors.append(f"prefix: expected the beginning of a DNS label of at most 63 characters, found {prefix!r}")
        return GeneratedValue(
            f"name({prefix!r}, length={length})",
            lambda entropy: f"{prefix}{entropy.name_suffix(length)}".encode(),
            lambda value: value.startswith(prefix.encode()) and len(value) == len(prefix) + length,
            tuple(errors),
        )


def draw_numbers(entropy: Entropy, count: int, below: int) -> list[int]:
    """Return random integers from zero up to, but not including, the limit."""
    return [min(int(entropy.uniform(0, below)), below - 1) for _ in range(count)]


def _validate_length(name: str, length: object, low: int, high: int = _MAX_LENGTH) -> Iterator[str]:
    if type(length) is not int:  # a bool is an int too
        yield f"{name}: expected an integer, found {type(length).__name__}"
    elif not low <= length <= high:
        yield f"{name}: expected {low} to {high}, found {length}"


def _validate_alphabet(alphabet: object) -> Iterator[str]:
    if not isinstance(alphabet, str):
        yield f"alphabet: expected a string, found {type(alphabet).__name__}"
    elif len(alphabet) < 2 or len(set(alphabet)) != len(alphabet):
        yield "alphabet: expected at least two characters, each once"
    elif not (alphabet.isascii() and alphabet.isprintable()) or " " in alphabet:
        yield "alphabet: expected printable ASCII characters without the space"


def _count_base64_bytes(value: bytes) -> int | None:
    try:
        return len(base64.b64decode(value, validate=True))
    except ValueError:
        return None


def _make_private_key(entropy: Entropy) -> bytes:
    with require_cryptography("Generated.private_key()"):
        from konverge._internal.certificates import generate_private_key
    return generate_private_key()
