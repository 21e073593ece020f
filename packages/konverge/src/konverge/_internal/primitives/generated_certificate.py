"""GeneratedCertificate: a Secret with a server's certificate that konverge issues and renews."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from konverge._internal.kube import Object
from konverge._internal.mutation import Mutation
from konverge._internal.primitives.certificate_loading import require_cryptography
from konverge._internal.primitives.data_cells import Data
from konverge._internal.primitives.generated_secret import GeneratedData
from konverge._internal.primitives.primitive import CommonOptions, DesiredObject
from konverge._internal.primitives.secret import SecretMutator
from konverge._internal.primitives.value_generation import (
    ValuePlan,
    build_stamps,
    find_rotation_request,
    read_value,
)
from konverge.clock import Entropy
from konverge.errors import KonvergeError

__all__ = ["GeneratedCertificate"]

_CERTIFICATE, _KEY, _AUTHORITY = "tls.crt", "tls.key", "ca.crt"
_KEYS = (_CERTIFICATE, _KEY, _AUTHORITY)
_TYPE = "kubernetes.io/tls"
_MIN_LIFETIME = timedelta(hours=1)
_MAX_NAME_LENGTH = 64  # X.520 allows no more for a common name


class GeneratedCertificate(GeneratedData):
    """A Secret of type ``kubernetes.io/tls`` with a certificate, its key and the authority that signed it.

    ::

        GeneratedCertificate(
            {"metadata": {"name": "db-tls", "namespace": "shop"}},
            dns_names=["db", "db.shop.svc"],
            valid_for=timedelta(days=90),
        )

    The certificate is issued once and renewed after two thirds of its lifetime, or when its names change. Each renewal
    has a new key and a new authority (``ca.crt``), whose key is not kept. It requires the package ``cryptography``
    (``pip install 'konverge[webhooks]'``).

    Args:
        obj: The desired baseline; copied.
        dns_names: The DNS names and addresses of the server.
        common_name: The name of the server, at most 64 characters (default: the first DNS name, shortened).
        valid_for: The period of validity, at least an hour (default: 90 days).
        cells: Data cells that get texts of the Secret, by key: ``tls.crt``, ``tls.key``, ``ca.crt``.
        rotation: Any text; the certificate is issued again when it changes to another text that is not empty.
        mutations: One mutation or several, in order.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        dns_names: Sequence[str],
        common_name: str = "",
        valid_for: timedelta = timedelta(days=90),
        cells: Mapping[str, Data[str]] | None = None,
        rotation: str = "",
        mutations: Mutation[SecretMutator] | Iterable[Mutation[SecretMutator]] = (),
        **common: Unpack[CommonOptions],
    ) -> None:
        names: object = dns_names
        is_list = isinstance(names, Iterable) and not isinstance(names, str)
        self._hosts: tuple[str, ...] = tuple(dns_names) if is_list else ()
        self._common_name = common_name
        self._lifetime = valid_for
        super().__init__(obj, keys=_KEYS, cells=cells or {}, rotation=rotation, mutations=mutations, **common)
        self.errors: tuple[str, ...] = (
            *self.errors,
            *_validate_names(dns_names, self._hosts, common_name),
            *_validate_lifetime(valid_for),
        )

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Report the entries that the API would reject, and a type or values that the certificate would replace."""
        yield from super().validate_kind(obj)
        if obj.get("type") not in (None, _TYPE):
            yield f"type: expected {_TYPE}, found {obj['type']!r}"

    def render_mutations(self, obj: Object, *, suspended: bool = False) -> Object:
        """Add the type of the Secret, then apply the mutations."""
        obj["type"] = _TYPE
        return super().render_mutations(obj, suspended=suspended)

    def plan_values(self, live: Object | None, now: datetime) -> ValuePlan:
        """Decide whether the certificate stays."""
        if live is None:
            return ValuePlan({}, _KEYS)
        values = {key: read_value(live, key) for key in _KEYS}
        kept = {key: value for key, value in values.items() if value is not None}
        if not kept:
            return ValuePlan({}, _KEYS)
        if reason := find_rotation_request(live, self._rotation) or self._describe_defect(kept, now):
            return ValuePlan({}, _KEYS, reason)
        with require_cryptography("GeneratedCertificate"):
            from konverge._internal import certificates
        due = certificates.compute_renewal_time(certificates.parse_pair(kept[_CERTIFICATE], kept[_KEY]))
        return ValuePlan(kept, (), "", due, build_stamps(live, self._rotation, None))

    def _describe_defect(self, kept: Mapping[str, bytes], now: datetime) -> str:
        with require_cryptography("GeneratedCertificate"):
            from konverge._internal import certificates
        if len(kept) < len(_KEYS):
            return f"{', '.join(key for key in _KEYS if key not in kept)} is missing"
        try:
            pair = certificates.parse_pair(kept[_CERTIFICATE], kept[_KEY])
        except ValueError:
            return "the certificate and its key cannot be read"
        if certificates.list_hosts(pair) != tuple(map(certificates.normalize_host, self._hosts)):
            return "its names changed"
        if certificates.is_renewal_due(pair, now):
            return "two thirds of its lifetime have passed"
        return ""

    def make_values(self, keys: Iterable[str], entropy: Entropy, now: datetime) -> dict[str, bytes]:
        """Issue a certificate; its key comes from the randomness of the system.

        Raises:
            konverge.errors.KonvergeError: A name is invalid in a certificate, or a package is missing.
        """
        with require_cryptography("GeneratedCertificate"):
            from konverge._internal import certificates
        name = self._common_name or self._hosts[0][:_MAX_NAME_LENGTH]
        try:
            pair, authority = certificates.issue_server_certificate(name, self._hosts, now, self._lifetime)
        except ValueError as error:
            raise KonvergeError(f"failed to issue the certificate of {self.identity}: {error}") from None
        return {_CERTIFICATE: pair.certificate, _KEY: pair.key, _AUTHORITY: authority}


def _validate_names(given: object, hosts: Sequence[object], common_name: object) -> Iterator[str]:
    if isinstance(given, str) or not hosts or not all(isinstance(host, str) and host for host in hosts):
        yield "dns_names: expected a list of DNS names or addresses, such as ['db', 'db.shop.svc']"
    if not isinstance(common_name, str) or len(common_name) > _MAX_NAME_LENGTH:
        yield f"common_name: expected a string of at most {_MAX_NAME_LENGTH} characters"


def _validate_lifetime(lifetime: object) -> Iterator[str]:
    if not isinstance(lifetime, timedelta):
        yield f"valid_for: expected a timedelta, found {type(lifetime).__name__}"
    elif lifetime < _MIN_LIFETIME:
        yield f"valid_for: expected an hour or more, found {lifetime}"
