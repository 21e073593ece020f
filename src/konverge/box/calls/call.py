"""One call of the file, compiled: from names to a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from konverge.box.calls.answers import LARGEST_BODY
from konverge.box.calls.credentials import Credential
from konverge.box.calls.failures import CallFailure
from konverge.box.calls.postgres import load_driver, split_query
from konverge.box.calls.requests import Request, check_headers, parsed_url
from konverge.box.calls.resp import READS
from konverge.box.calls.retrying import NEVER, Pauses
from konverge.box.expressions import (
    OMIT,
    Conditions,
    Structure,
    Template,
    compile_expression,
    compile_structure,
    has_sensitive,
    is_expression,
    revealed,
)
from konverge.box.expressions.schedule import parse_period
from konverge.box.expressions.values import text_of
from konverge.box.file import ExternalCall
from konverge.box.steps import Reader, Scope, conditions_of
from konverge.errors import ConfigurationError
from konverge.network import Networks

__all__ = ["Call"]

_FIXED_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#{%]+[/?#]")
_WORD = re.compile(r"""(?:\{\{.*?\}\}|[^\s{]|\{(?!\{))+""", re.DOTALL)
_MOST_WORDS = 100
_MOST_SECONDS = 600.0


class Call:
    """An entry of ``external``.

    Args:
        declared: As the file has it.
        where: Its path in the file.
        networks: Where it may go besides the public internet.

    Raises:
        ConfigurationError: It cannot be made; the message says what to change.
    """

    def __init__(self, declared: ExternalCall, where: str, networks: Networks) -> None:
        self.name = declared.name
        self.where = where
        self.protocol = declared.protocol
        self.continues_on_error = declared.continue_on_error
        self._declared = declared
        self._networks = networks
        _check_fields(declared, where)
        self._conditions: Conditions = conditions_of(declared, where)
        self._url = compile_expression(declared.url, where=f"{where}.url")
        self._query_text, words = _query(declared, where)
        self._query = tuple(compile_expression(word, where=f"{where}.query") for word in words)
        self._headers: Structure = compile_structure(declared.headers, where=f"{where}.headers")
        body = None if declared.body is UNSET else declared.body
        self._body: Structure = compile_structure(body, where=f"{where}.body")
        auth = declared.auth
        is_fixed = not is_expression(declared.url) or _FIXED_HOST.match(declared.url) is not None
        self._credential = Credential(auth, f"{where}.auth", has_fixed_host=is_fixed) if auth is not None else None
        self._timeout = _seconds(declared.timeout, f"{where}.timeout", least=0.001, most=_MOST_SECONDS)
        self._cache_seconds = _seconds(declared.cache_for, f"{where}.cacheFor") if declared.cache_for else 0.0
        self._pauses = _pauses(declared, where)

    def names(self) -> frozenset[tuple[str, ...]]:
        """The paths that its expressions may read."""
        parts: tuple[Conditions | Template | Structure, ...] = (
            self._conditions,
            self._url,
            *self._query,
            self._headers,
            self._body,
        )
        found = frozenset[tuple[str, ...]]().union(*(part.names() for part in parts))
        return found | self._credential.names() if self._credential is not None else found

    def next_change(self, now: datetime) -> datetime | None:
        """When its conditions may be otherwise although nothing else is."""
        return self._conditions.next_change(now)

    def is_on(self, scope: Scope) -> bool:
        """Tell whether it is to be made.

        Raises:
            konverge.box.expressions.ExpressionError: A condition cannot be asked.
        """
        return scope.holds(self._conditions)

    async def request(
        self, scope: Scope, reader: Reader, own_namespace: str, environment: Mapping[str, str] | None
    ) -> Request:
        """What is to be sent.

        Args:
            scope: What its expressions read.
            reader: For the Secret of its credential.
            own_namespace: That of the custom resource; empty for one of the cluster.
            environment: The operator's variables; None for a request that is sent to nobody, and has no credential.

        Raises:
            CallFailure: It cannot be sent as it is.
            konverge.box.expressions.ExpressionError: An expression has no value.
        """
        url = _text(scope, self._url)
        query = [_text(scope, word, may_be_null=self.protocol == "postgres") for word in self._query]
        headers = _headers(scope.render(self._headers))
        body = scope.render(self._body)
        is_sensitive = has_sensitive([url, query, headers, body])
        plain = {name: str(revealed(value)) for name, value in headers.items()}
        check_headers(plain)
        words = [revealed(word) for word in query]
        credential = ""
        if self._credential is not None and environment is not None:
            credential = await self._credential.value(scope, reader, own_namespace, environment)
        return Request(
            name=self.name,
            protocol=self.protocol,
            url=parsed_url(str(revealed(url)), self.protocol, is_sensitive=is_sensitive),
            networks=self._networks,
            method=self._declared.method,
            headers=plain,
            body=_body(revealed(body)),
            query=self._query_text or (str(words[0]) if self.protocol == "prometheus" else ""),
            parameters=_parameters(words) if self.protocol == "postgres" else (),
            command=(words[0].upper(), *map(str, words[1:])) if self.protocol == "redis" else (),
            credential=credential,
            credential_header=self._credential.header if self._credential is not None else "Authorization",
            expected=self._declared.expected_status,
            timeout_seconds=self._timeout,
            pauses=self._pauses,
            cache_seconds=self._cache_seconds,
            is_sensitive=is_sensitive,
        )


def _check_fields(declared: ExternalCall, where: str) -> None:
    """What a protocol has no use for would be left out without a word."""
    protocol = declared.protocol
    if protocol == "postgres":
        load_driver()
    if (protocol == "http") != (not declared.query):
        found = "one" if declared.query else "none"
        expected = "no query: it is for prometheus, redis and postgres" if protocol == "http" else "a query"
        raise ConfigurationError(f"{where}.query: expected {expected}, found {found}")
    of_http = {"body": declared.body is not UNSET, "method": declared.method != "GET"}
    of_web = {"headers": bool(declared.headers), "expectedStatus": bool(declared.expected_status)}
    useless = {**(of_http if protocol != "http" else {}), **(of_web if protocol in ("redis", "postgres") else {})}
    for field, is_given in useless.items():
        if is_given:
            raise ConfigurationError(f"{where}.{field}: expected none with protocol {protocol}, found one")
    if declared.auth is not None:
        try:
            check_headers({declared.auth.header: ""})
        except CallFailure as failure:
            raise ConfigurationError(f"{where}.auth: {failure.problem}") from None
    if not is_expression(declared.url):
        try:
            parsed_url(declared.url, protocol)
        except CallFailure as failure:
            raise ConfigurationError(f"{where}.url: {failure.problem}") from None


def _query(declared: ExternalCall, where: str) -> tuple[str, list[str]]:
    """What of a query is always the same, and the texts that are evaluated anew."""
    if declared.protocol == "postgres":
        try:
            return split_query(declared.query)
        except ValueError as error:
            raise ConfigurationError(f"{where}.query: {error}") from None
    return "", _words(declared.query, where) if declared.protocol == "redis" else [declared.query]


def _words(query: str, where: str) -> list[str]:
    """The words of a command, before expressions are evaluated: a value with blanks in it stays one word."""
    words = _WORD.findall(query)
    if not words or words[0].upper() not in READS:
        known = ", ".join(sorted(READS))
        raise ConfigurationError(f"{where}.query: expected a command that reads ({known}), found {query[:40]!r}")
    if len(words) > _MOST_WORDS:
        raise ConfigurationError(f"{where}.query: expected at most {_MOST_WORDS} words, found {len(words)}")
    return words


def _pauses(declared: ExternalCall, where: str) -> Pauses:
    retry = declared.retry
    if retry is None:
        return NEVER
    return Pauses(
        retry.attempts,
        _seconds(retry.initial, f"{where}.retry.initial", most=_MOST_SECONDS),
        _seconds(retry.max, f"{where}.retry.max", most=_MOST_SECONDS),
        retry.factor,
    )


def _seconds(text: str, where: str, *, least: float = 0.0, most: float = float("inf")) -> float:
    try:
        seconds = parse_period(text).total_seconds()
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    if not least <= seconds <= most:
        raise ConfigurationError(f"{where}: expected from {least:g} up to {most:g} seconds, found {text}")
    return seconds


def _parameters(values: list[Any]) -> tuple[str | None, ...]:
    found = tuple(None if value is None else str(value) for value in values)
    if any(value is not None and "\0" in value for value in found):
        raise CallFailure("expected values for the query without NUL, found one")
    return found


def _text(scope: Scope, template: Template, *, may_be_null: bool = False) -> Any:
    """The text of what a template comes to, sensitive if that is."""
    value = scope.render(template)
    if has_sensitive(value) or (may_be_null and value is None):
        return value
    try:
        return text_of("" if value is OMIT else value)
    except ValueError as error:
        raise CallFailure(f"{template.where}: {error}") from None


def _headers(rendered: Any) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in rendered.items():
        try:
            headers[str(revealed(name))] = value if has_sensitive(value) else text_of(value)
        except ValueError as error:
            raise CallFailure(f"header {name}: {error}") from None
    return headers


def _body(value: Any) -> bytes | None:
    if value is None or value is OMIT:
        return None
    body = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    if len(body) > LARGEST_BODY:
        raise CallFailure(f"expected a body of at most {LARGEST_BODY} bytes, found {len(body)}")
    return body
