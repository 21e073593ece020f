"""One compiled call of the file, which builds a request from a scope."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET

from konverge.errors import ConfigurationError
from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.call_result import MAX_BODY_BYTES
from konverge_box._internal.calls.credentials import CallCredential
from konverge_box._internal.calls.postgres_calls import load_driver, split_query
from konverge_box._internal.calls.requests import SCHEMES, CallRequest, check_headers, parse_call_url
from konverge_box._internal.calls.resp import READ_COMMANDS
from konverge_box._internal.calls.retry_policy import NO_RETRIES, RetryPolicy
from konverge_box._internal.expressions import (
    OMIT,
    ConditionSet,
    Structure,
    Template,
    compile_expression,
    compile_structure,
    has_sensitive,
    is_expression,
    reveal_sensitive,
)
from konverge_box._internal.expressions.schedules import parse_period
from konverge_box._internal.expressions.values import format_scalar
from konverge_box._internal.file import ExternalCall
from konverge_box._internal.steps import ObjectReader, Scope, compile_entry_conditions
from konverge_resolution._internal.network import AllowedNetworks

__all__ = ["CompiledCall"]

_FIXED_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#{%]+[/?#]")
_WORD = re.compile(r"""(?:\{\{.*?\}\}|[^\s{]|\{(?!\{))+""", re.DOTALL)
_EXPRESSION_START = re.compile(r"\{[{%#]")
_MAX_WORDS = 100
_MAX_SECONDS = 600.0


class CompiledCall:
    """A compiled entry of ``external``.

    Args:
        declared: The entry in the file.
        where: Its path in the file.
        networks: The allowed networks besides the public internet.

    Raises:
        ConfigurationError: The entry is invalid. The message describes the necessary change.
    """

    def __init__(self, declared: ExternalCall, where: str, networks: AllowedNetworks) -> None:
        self.name = declared.name
        self.where = where
        self.protocol = declared.protocol
        self.continues_on_error = declared.continue_on_error
        self._declared = declared
        self._networks = networks
        _check_fields(declared, where)
        self._conditions: ConditionSet = compile_entry_conditions(declared, where)
        self._url = compile_expression(declared.url, where=f"{where}.url")
        self._query_text, words = _split_query(declared, where)
        self._query = tuple(compile_expression(word, where=f"{where}.query") for word in words)
        self._headers: Structure = compile_structure(declared.headers, where=f"{where}.headers")
        body = None if declared.body is UNSET else declared.body
        self._body: Structure = compile_structure(body, where=f"{where}.body")
        auth = declared.auth
        is_fixed = not is_expression(declared.url) or _FIXED_HOST.match(declared.url) is not None
        self._credential = CallCredential(auth, f"{where}.auth", has_fixed_host=is_fixed) if auth is not None else None
        self._timeout = _parse_seconds(declared.timeout, f"{where}.timeout", least=0.001, most=_MAX_SECONDS)
        self._cache_seconds = _parse_seconds(declared.cache_for, f"{where}.cacheFor") if declared.cache_for else 0.0
        self._pauses = _parse_retry_policy(declared, where)

    def list_read_paths(self) -> frozenset[tuple[str, ...]]:
        """Return the paths that its expressions can read."""
        parts: tuple[ConditionSet | Template | Structure, ...] = (
            self._conditions,
            self._url,
            *self._query,
            self._headers,
            self._body,
        )
        paths = frozenset[tuple[str, ...]]().union(*(part.list_read_paths() for part in parts))
        return paths | self._credential.list_read_paths() if self._credential is not None else paths

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which its conditions can change by themselves; None without one."""
        return self._conditions.find_next_change(now)

    def is_enabled(self, scope: Scope) -> bool:
        """Tell whether its conditions hold, so that it is sent.

        Raises:
            konverge_box.expressions.ExpressionError: A condition cannot be evaluated.
        """
        return scope.holds(self._conditions)

    async def build_request(
        self, scope: Scope, reader: ObjectReader, own_namespace: str, environment: Mapping[str, str] | None
    ) -> CallRequest:
        """Build the request.

        Args:
            scope: The scope of its expressions.
            reader: Reads the Secret of its credential.
            own_namespace: The namespace of the custom resource; empty for a cluster-scoped one.
            environment: The environment variables of the operator; None for a request that is not sent and needs no
                credential.

        Raises:
            CallAttemptError: The request is not valid.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        url = _render_text(scope, self._url)
        query = [_render_text(scope, word, may_be_null=self.protocol == "postgres") for word in self._query]
        headers = _build_headers(scope.render(self._headers))
        body = scope.render(self._body)
        is_sensitive = has_sensitive([url, query, headers, body])
        plain = {name: str(reveal_sensitive(value)) for name, value in headers.items()}
        check_headers(plain)
        words = [reveal_sensitive(word) for word in query]
        credential = ""
        if self._credential is not None and environment is not None:
            credential = await self._credential.read_value(scope, reader, own_namespace, environment)
        return CallRequest(
            name=self.name,
            protocol=self.protocol,
            url=parse_call_url(str(reveal_sensitive(url)), self.protocol, is_sensitive=is_sensitive),
            networks=self._networks,
            method=self._declared.method,
            headers=plain,
            body=_encode_body(reveal_sensitive(body)),
            query=self._query_text or (str(words[0]) if self.protocol == "prometheus" else ""),
            parameters=_build_parameters(words) if self.protocol == "postgres" else (),
            command=(words[0].upper(), *map(str, words[1:])) if self.protocol == "redis" else (),
            credential=credential,
            credential_header=self._credential.header if self._credential is not None else "Authorization",
            expected=self._declared.expected_status,
            timeout_seconds=self._timeout,
            retry_policy=self._pauses,
            cache_seconds=self._cache_seconds,
            is_sensitive=is_sensitive,
        )


def _check_fields(declared: ExternalCall, where: str) -> None:
    """Reject fields that the protocol does not use: they would otherwise be ignored silently."""
    protocol = declared.protocol
    if protocol == "postgres":
        load_driver()
    if (protocol == "http") != (not declared.query):
        actual = "one" if declared.query else "none"
        expected = "no query (only prometheus, redis and postgres have one)" if protocol == "http" else "a query"
        raise ConfigurationError(f"{where}.query: expected {expected}, found {actual}")
    of_http = {"body": declared.body is not UNSET, "method": declared.method != "GET"}
    of_web = {"headers": bool(declared.headers), "expectedStatus": bool(declared.expected_status)}
    unused = {**(of_http if protocol != "http" else {}), **(of_web if protocol in ("redis", "postgres") else {})}
    for field, is_given in unused.items():
        if is_given:
            raise ConfigurationError(
                f"{where}.{field}: expected no {field} with protocol {protocol}, found one; remove it"
            )
    if declared.auth is not None:
        try:
            check_headers({declared.auth.header: ""})
        except CallAttemptError as failure:
            raise ConfigurationError(f"{where}.auth: {failure.problem}") from None
    hint = _suggest_scheme(declared.url, protocol)
    if not is_expression(declared.url):
        try:
            parse_call_url(declared.url, protocol)
        except CallAttemptError as failure:
            raise ConfigurationError(f"{where}.url: {failure.problem}{hint}") from None
    elif hint:
        raise ConfigurationError(f"{where}.url: expected a URL such as {SCHEMES[protocol][0]}://host/…{hint}")


def _suggest_scheme(url: str, protocol: str) -> str:
    """Return the end of a message about a URL without a scheme; empty if its literal beginning can have one."""
    beginning = _EXPRESSION_START.split(url, 1)[0]
    schemes = [f"{scheme}://" for scheme in SCHEMES[protocol]]
    if not beginning or "://" in beginning or any(scheme.startswith(beginning.lower()) for scheme in schemes):
        return ""
    secure = schemes[-1] if protocol in ("http", "prometheus") else schemes[0]
    return f"; did you mean {secure}{beginning}{'…' if beginning != url else ''}?"


def _split_query(declared: ExternalCall, where: str) -> tuple[str, list[str]]:
    """Split a query into its constant text and the expressions that each reconcile evaluates."""
    if declared.protocol == "postgres":
        try:
            return split_query(declared.query)
        except ValueError as error:
            raise ConfigurationError(f"{where}.query: {error}") from None
    return "", _split_words(declared.query, where) if declared.protocol == "redis" else [declared.query]


def _split_words(query: str, where: str) -> list[str]:
    """Split a command into words before its expressions are evaluated, so that a value with blanks stays one word."""
    words = _WORD.findall(query)
    if not words or words[0].upper() not in READ_COMMANDS:
        known = ", ".join(sorted(READ_COMMANDS))
        raise ConfigurationError(f"{where}.query: expected a command that only reads ({known}), found {query[:40]!r}")
    if len(words) > _MAX_WORDS:
        raise ConfigurationError(f"{where}.query: expected at most {_MAX_WORDS} words, found {len(words)}")
    return words


def _parse_retry_policy(declared: ExternalCall, where: str) -> RetryPolicy:
    retry = declared.retry
    if retry is None:
        return NO_RETRIES
    return RetryPolicy(
        retry.attempts,
        _parse_seconds(retry.initial, f"{where}.retry.initial", most=_MAX_SECONDS),
        _parse_seconds(retry.max, f"{where}.retry.max", most=_MAX_SECONDS),
        retry.factor,
    )


def _parse_seconds(text: str, where: str, *, least: float = 0.0, most: float = float("inf")) -> float:
    try:
        seconds = parse_period(text).total_seconds()
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None
    if not least <= seconds <= most:
        raise ConfigurationError(f"{where}: expected from {least:g} up to {most:g} seconds, found {text}")
    return seconds


def _build_parameters(values: list[Any]) -> tuple[str | None, ...]:
    parameters = tuple(None if value is None else str(value) for value in values)
    if any(value is not None and "\0" in value for value in parameters):
        raise CallAttemptError("expected query values without NUL characters, found one")
    return parameters


def _render_text(scope: Scope, template: Template, *, may_be_null: bool = False) -> Any:
    """Render a template as text. A sensitive value stays sensitive."""
    value = scope.render(template)
    if has_sensitive(value) or (may_be_null and value is None):
        return value
    try:
        return format_scalar("" if value is OMIT else value)
    except ValueError as error:
        raise CallAttemptError(f"{template.where}: {error}") from None


def _build_headers(rendered: Any) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in rendered.items():
        try:
            headers[str(reveal_sensitive(name))] = value if has_sensitive(value) else format_scalar(value)
        except ValueError as error:
            raise CallAttemptError(f"header {name}: {error}") from None
    return headers


def _encode_body(value: Any) -> bytes | None:
    if value is None or value is OMIT:
        return None
    body = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    if len(body) > MAX_BODY_BYTES:
        raise CallAttemptError(f"expected a body of at most {MAX_BODY_BYTES} bytes, found {len(body)}")
    return body
