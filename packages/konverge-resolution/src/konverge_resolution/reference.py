"""A reference: what names a remote definition, and the name of the request that asks for it."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import msgspec

from konverge.kube.name_validation import validate_dns_label
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.url_credentials import find_credential

__all__ = [
    "DIGEST_PATTERN",
    "Digest",
    "Parameters",
    "Reference",
    "Value",
    "build_request_name",
    "iter_texts",
    "redact_source",
    "to_canonical_json",
]

Value: TypeAlias = str | list[str] | dict[str, str]
"""Of a parameter: most are text; lists of texts and mappings of texts are for resolvers that ask for them."""

Parameters: TypeAlias = Mapping[str, Value]

DIGEST_PATTERN = "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$"
"""What a `Digest` looks like, for schemas. Python's ``$`` lets a newline follow; `Digest.parse` does not."""

_MAX_PARAMETERS = 64
_MAX_BYTES = 64 * 1024
_PREFIX_LENGTH = 30
_HEX_LENGTH = {"sha256": 64, "sha512": 128}
_DIGEST = re.compile(r"(?P<algorithm>[a-z0-9]+):(?P<hex>[0-9a-f]+)")


class Digest(msgspec.Struct, frozen=True):
    """What bytes have to be: ``sha256:…`` or ``sha512:…``."""

    algorithm: str
    hex: str

    @classmethod
    def parse(cls, text: str) -> Digest:
        """Read one.

        Raises:
            ValueError: It is none; the message says what was expected.
        """
        found = _DIGEST.fullmatch(text)
        if found is None or len(found["hex"]) != _HEX_LENGTH.get(found["algorithm"]):
            raise ValueError(f"expected sha256: and 64, or sha512: and 128 hexadecimal digits, found {text[:160]!r}")
        return cls(found["algorithm"], found["hex"])

    @classmethod
    def of(cls, data: bytes, algorithm: str = "sha256") -> Digest:
        """The digest of these bytes."""
        return cls(algorithm, hashlib.new(algorithm, data).hexdigest())

    def matches(self, data: bytes) -> bool:
        """Tell whether these are the bytes."""
        return hmac.compare_digest(hashlib.new(self.algorithm, data).hexdigest(), self.hex)

    def describe_mismatch(self, data: bytes) -> str:
        """What is told of bytes that it does not fit."""
        return f"the content is not what its digest says: expected {self}, found {Digest.of(data, self.algorithm)}"

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.hex}"


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, eq=False):
    """Names a remote definition: who can get it, and parameters that only the resolver understands.

    Two are equal when they name the same, whatever they were pinned from.

    Attributes:
        resolver: The resolver's name, for example ``git``.
        params: What it is asked for.
        digest: What the content has to be; None takes what comes.
        unpinned: Where ``params`` are a pin: what was asked for by a name that moves, such as a branch. Policies judge
            these in place of the pin, so only code that has pinned sets it; no file and no request has this field.
    """

    resolver: str
    params: Parameters = {}
    digest: Digest | None = None
    unpinned: Parameters | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            return NotImplemented
        return (self.resolver, self.params, self.digest) == (other.resolver, other.params, other.digest)

    __hash__ = None  # type: ignore[assignment]  # parameters are a mapping

    def check(self) -> None:
        """Refuse what no resolver could do with.

        Raises:
            ResolutionError: The name is none, or the parameters are too many, too long or of other types, or one is an
                address with a credential in it.
        """
        if mistakes := validate_dns_label(self.resolver):
            shown = self.resolver[:80]
            raise ResolutionError(Reason.INVALID_PARAMETERS, f"resolver {shown!r}: {mistakes[0]}")
        if len(self.params) > _MAX_PARAMETERS:
            found = len(self.params)
            raise ResolutionError(
                Reason.INVALID_PARAMETERS, f"expected at most {_MAX_PARAMETERS} parameters, found {found}"
            )
        for name, value in self.params.items():
            if not name or not _is_value(value):
                expected = "expected text, a list of texts or a mapping of texts"
                raise ResolutionError(
                    Reason.INVALID_PARAMETERS, f"parameter {str(name)[:80]!r}: {expected}, found {type(value).__name__}"
                )
        if len(to_canonical_json(self.params)) > _MAX_BYTES:
            raise ResolutionError(Reason.INVALID_PARAMETERS, f"expected at most {_MAX_BYTES} bytes of parameters")
        for name, value in self.params.items():
            if where := next((place for text in iter_texts({name: value}) if (place := find_credential(text))), ""):
                message = f"parameter {name[:80]!r}: expected no credential in an address, found {where}"
                raise ResolutionError(
                    Reason.INVALID_PARAMETERS,
                    f"{message}; put it into a Secret, and name that with a parameter of resolver {self.resolver!r}",
                )


def _is_value(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, dict) and all(isinstance(part, str) for pair in value.items() for part in pair)


def iter_texts(params: Parameters) -> Iterator[str]:
    """All texts in the values of parameters."""
    for value in params.values():
        if isinstance(value, str):
            yield value
        else:
            yield from value if isinstance(value, list) else (text for pair in value.items() for text in pair)


def to_canonical_json(value: Any) -> bytes:
    """The same bytes for equal values, and different ones for different values: mappings come sorted.

    Joining the parts without marks would give two references one name (reference facts, 2.2).
    """
    return msgspec.json.encode(value, order="sorted")


def redact_source(text: str) -> str:
    """An address as messages have it: without a user and a query, which can have a credential.

    Empty for one that cannot be read, or that a terminal would obey.
    """
    try:
        found = urlsplit(text)
        shown = urlunsplit(found._replace(netloc=found.netloc.rpartition("@")[2], query="", fragment=""))
    except ValueError:
        return ""
    return shown if shown.isprintable() else ""


def build_request_name(reference: Reference, *, namespace: str, owner_uid: str) -> str:
    """What the request for a reference of an owner is called; the same owner and reference have one request.

    At most 63 characters: the resolver's name, cut, and 32 hexadecimal digits.
    """
    digest = None if reference.digest is None else str(reference.digest)
    message = to_canonical_json([namespace, owner_uid, reference.resolver, reference.params, digest])
    prefix = reference.resolver[:_PREFIX_LENGTH].rstrip("-")
    return f"{prefix}-{hashlib.sha256(message).hexdigest()[:32]}"
