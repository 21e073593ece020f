"""References to remote definitions, and the name of a request for one."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import msgspec

from konverge._internal.kube.name_validation import validate_dns_label
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.url_credentials import find_credential

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
"""Value of a parameter: usually text; some resolvers accept lists of texts and mappings of texts."""

Parameters: TypeAlias = Mapping[str, Value]

DIGEST_PATTERN = "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$"
"""Pattern of a `Digest` for schemas. Python's ``$`` also matches before a newline; `Digest.parse` does not."""

_MAX_PARAMETERS = 64
_MAX_BYTES = 64 * 1024
_PREFIX_LENGTH = 30
_HEX_LENGTH = {"sha256": 64, "sha512": 128}
_DIGEST = re.compile(r"(?P<algorithm>[a-z0-9]+):(?P<hex>[0-9a-f]+)")


class Digest(msgspec.Struct, frozen=True):
    """Expected digest of bytes: ``sha256:…`` or ``sha512:…``."""

    algorithm: str
    hex: str

    @classmethod
    def parse(cls, text: str) -> Digest:
        """Parse a digest with its algorithm.

        Raises:
            ValueError: The text is not a digest; the message has the expected format.
        """
        match = _DIGEST.fullmatch(text)
        if match is None or len(match["hex"]) != _HEX_LENGTH.get(match["algorithm"]):
            raise ValueError(f"expected sha256: and 64, or sha512: and 128 hexadecimal digits, found {text[:160]!r}")
        return cls(match["algorithm"], match["hex"])

    @classmethod
    def of(cls, data: bytes, algorithm: str = "sha256") -> Digest:
        """Return the digest of these bytes."""
        return cls(algorithm, hashlib.new(algorithm, data).hexdigest())

    def matches(self, data: bytes) -> bool:
        """Tell whether the bytes have this digest."""
        return hmac.compare_digest(hashlib.new(self.algorithm, data).hexdigest(), self.hex)

    def describe_mismatch(self, data: bytes) -> str:
        """Describe bytes that do not have this digest."""
        return f"the content does not match its digest: expected {self}, found {Digest.of(data, self.algorithm)}"

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.hex}"


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, eq=False):
    """Name of a remote definition: a resolver, and parameters that only the resolver interprets.

    Two references are equal if they name the same content, whatever they were pinned from.

    Attributes:
        resolver: The resolver's name, for example ``git``.
        params: The parameters for the resolver.
        digest: The expected digest of the content; None accepts any content.
        unpinned: The parameters before ``params`` were pinned, with a movable name such as a branch. Policies check
            these instead of the pin, so only code that pins sets the field; no file and no request has it.
    """

    resolver: str
    params: Parameters = {}
    digest: Digest | None = None
    unpinned: Parameters | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            return NotImplemented
        return (self.resolver, self.params, self.digest) == (other.resolver, other.params, other.digest)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # parameters are a mapping

    def check(self) -> None:
        """Refuse a reference that is invalid for every resolver.

        Raises:
            ResolutionError: The name of the resolver is invalid; there are too many parameters; their values are too
                long or of other types; or an address has a credential.
        """
        if mistakes := validate_dns_label(self.resolver):
            name = self.resolver[:80]
            raise ResolutionError(Reason.INVALID_PARAMETERS, f"resolver {name!r}: {mistakes[0]}")
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
                message = f"parameter {name[:80]!r}: expected an address without a credential, found {where}"
                raise ResolutionError(
                    Reason.INVALID_PARAMETERS,
                    f"{message}; put it into a Secret, named by a parameter of resolver {self.resolver!r}",
                )


def _is_value(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, dict) and all(isinstance(part, str) for pair in value.items() for part in pair)


def iter_texts(params: Parameters) -> Iterator[str]:
    """Yield all texts in the values of parameters."""
    for value in params.values():
        if isinstance(value, str):
            yield value
        else:
            yield from value if isinstance(value, list) else (text for pair in value.items() for text in pair)


def to_canonical_json(value: Any) -> bytes:
    """Encode a value as JSON with sorted mappings: the same bytes for equal values only.

    A plain concatenation of the parts could give two references the same name (reference facts, 2.2).
    """
    return msgspec.json.encode(value, order="sorted")


def redact_source(text: str) -> str:
    """Return an address for messages, without its user and query, which can contain a credential.

    Empty for an invalid address, or one with control characters for a terminal.
    """
    try:
        parts = urlsplit(text)
        address = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
    except ValueError:
        return ""
    return address if address.isprintable() else ""


def build_request_name(reference: Reference, *, namespace: str, owner_uid: str) -> str:
    """Return the name of the request for an owner's reference; it is the same for the same owner and reference.

    It has at most 63 characters: the resolver's name, cut, and 32 hexadecimal digits.
    """
    digest = None if reference.digest is None else str(reference.digest)
    message = to_canonical_json([namespace, owner_uid, reference.resolver, reference.params, digest])
    prefix = reference.resolver[:_PREFIX_LENGTH].rstrip("-")
    return f"{prefix}-{hashlib.sha256(message).hexdigest()[:32]}"
