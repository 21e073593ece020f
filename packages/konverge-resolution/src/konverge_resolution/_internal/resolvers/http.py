"""Resolver ``http``: one file from a URL, with a credential of the requester and an optional digest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yarl import URL

from konverge_resolution._internal.credential_hosts import CREDENTIAL_SETTINGS, check_host, encode_basic_auth
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import (
    CONNECTION_SETTINGS,
    build_http_client,
    build_status_error,
    wrap_network_errors,
)
from konverge_resolution._internal.network import HttpStream, InvalidRequestError, OriginCredential, parse_url
from konverge_resolution._internal.parameter_checks import (
    build_param_error,
    check_names,
    check_secret,
    get_text,
    name_params_in_errors,
)
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters
from konverge_resolution._internal.relative_references import join_path
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest, Parameter, ParameterRole, Setting
from konverge_resolution._internal.resolver_settings import FETCH_SETTINGS
from konverge_resolution._internal.resolvers.web_pages import suggest_raw_url
from konverge_resolution._internal.source_prefix import canonicalize_source
from konverge_resolution._internal.user_logins import find_user_login, name_user_login_in_errors

__all__ = ["HttpResolver"]

_ACCEPT = "application/yaml, application/json, text/plain;q=0.9, */*;q=0.5"
_CREDENTIAL = ParameterRole.CREDENTIAL
_QUERY = re.compile(r"[!$-~]{1,4096}")  # neither a blank nor a fragment
_MAX_TYPE = 80
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_FILES = re.compile(
    r"(application|text)/(x-|vnd\.)?(yaml|yml|json)|[a-z]+/[a-z0-9.!#$&^_-]+\+(yaml|json)"
    r"|text/plain|(application|binary)/(octet-stream|x-octet-stream)"
)
"""Media types of YAML and JSON, and those that servers use for files of an unknown type."""


@dataclass(frozen=True, slots=True)
class _UrlDestination:
    scheme: str
    host: str
    authority: str


class HttpResolver:
    """Fetches one file over HTTP.

    Attributes:
        name: ``http``.
        parameters: Its parameters.
        settings: Its settings.
    """

    name = "http"
    parameters: Mapping[str, Parameter] = {
        "url": Parameter("Address of the file, with http or https", required=True),
        "http-username": Parameter("User for basic authentication; requires http-password-secret", role=_CREDENTIAL),
        "http-password-secret": Parameter(
            "Secret with the password of that user, in the requester's namespace", role=_CREDENTIAL
        ),
        "http-password-secret-key": Parameter(
            "Key of the password in that Secret", default="password", role=_CREDENTIAL
        ),
        "http-token-secret": Parameter("Secret with a bearer token, in the requester's namespace", role=_CREDENTIAL),
        "http-token-secret-key": Parameter("Key of the token in that Secret", default="token", role=_CREDENTIAL),
        "http-query-secret": Parameter(
            "Secret with the part of the URL's query that is a credential, in the requester's namespace",
            role=_CREDENTIAL,
        ),
        "http-query-secret-key": Parameter("Key of the query in that Secret", default="query", role=_CREDENTIAL),
        "digest": Parameter(
            "Expected digest of the content: sha256: or sha512: and hexadecimal digits",
            role=ParameterRole.CONTENT_DIGEST,
        ),
    }
    settings: Mapping[str, Setting] = {
        **FETCH_SETTINGS,
        **CREDENTIAL_SETTINGS,
        **CONNECTION_SETTINGS,
    }

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the parameters with their defaults and the normalized URL.

        Raises:
            ResolutionError: ``InvalidParams`` with the name of the parameter.
        """
        check_names(params, self.parameters)
        validated = {name: get_text(params, name).strip() for name in params}
        for name, value in validated.items():
            if not value:
                raise build_param_error(name, "expected a value, found none")
        validated["url"] = str(_parse_url(validated.get("url", "")))
        _check_credentials(validated)
        if "digest" in validated:
            validated["digest"] = _parse_digest(validated["digest"])
        return validated

    def spell_parameter(self, name: str, value: str) -> Sequence[str]:
        """Return the spellings of a value, as policies compare it."""
        if name != "url":
            return (value,)
        try:
            url = str(_parse_url(value))
        except ResolutionError:
            return (value,)
        return url, canonicalize_source(url)

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Return the URL without its query, which may contain a token."""
        return _strip_query(str(params["url"]))

    def is_pinned(self, params: Parameters) -> bool:
        """Tell whether the parameters have a digest."""
        return "digest" in params

    def build_provenance(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Provenance
    ) -> Provenance:
        """Return the URL without its query, and the digest of the content."""
        return Provenance(_strip_query(str(params["url"])), {digest.algorithm: digest.hex})

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        """Return the parameters of another file of the same server, with the same credential.

        Raises:
            ResolutionError: ``InvalidParams``: the path leaves the server.
        """
        url = URL(str(params["url"]))
        # Without decoding: encoded characters stay encoded.
        relative_url = url.with_path(f"/{join_path(url.raw_path, path)}", encoded=True)
        return {name: value for name, value in params.items() if name != "digest"} | {"url": str(relative_url)}

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Return None, because only a fetch finds the current content."""
        return None

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Fetch the file with one request and its redirects.

        Raises:
            ResolutionError: There is no such file, or it has another digest.
        """
        http = build_http_client(fetch)
        url = str(fetch.params["url"])
        source = _strip_query(url)
        credential, query = await _read_credential(fetch, URL(url)), await _read_secret_query(fetch, URL(url))

        async def download(credential: OriginCredential | None) -> tuple[bytes, str]:
            with wrap_network_errors(source):
                async with http.stream(
                    _append_query(url, query),
                    headers={"Accept": _ACCEPT},
                    max_bytes=fetch.max_bytes,
                    credential=credential,
                ) as response:
                    # Before the body is read: the page of an error can be larger than the limit of definitions.
                    if response.status != 200:
                        now = fetch.services.clock.now()
                        has_credential = credential is not None or bool(query)
                        raise build_status_error(response, source, has_credential=has_credential, now=now)
                    _check_type(response, source)
                    return await response.read(), response.redirected_to

        destination = _find_destination(URL(url))
        with name_user_login_in_errors(fetch, source):
            try:
                data, found_at = await download(credential)
            except ResolutionError as error:
                if credential is not None or query or error.reason is not Reason.AUTHENTICATION_REQUIRED:
                    raise
                login = await find_user_login(fetch, destination, lambda users: users.find_http_login(source))
                if login is None:
                    raise
                header = encode_basic_auth(login.user, login.password)
                data, found_at = await download(OriginCredential(header, str(URL(url).origin())))
        digest = Digest.of(data)
        if "digest" in fetch.params:
            expected = Digest.parse(str(fetch.params["digest"]))
            if not expected.matches(data):
                message = f"{source}: the content does not match parameter 'digest': expected {expected}"
                raise ResolutionError(Reason.DIGEST_MISMATCH, f"{message}, found {Digest.of(data, expected.algorithm)}")
        return ResolvedContent(
            data,
            Provenance(source, {"sha256": digest.hex}),
            {"url": source},
            pinned={"digest": str(digest), **fetch.params},
            found_at=found_at,
        )


def _parse_url(text: str) -> URL:
    if not text:
        raise build_param_error("url", "expected the address of a file, found none")
    try:
        url = parse_url(text)
    except InvalidRequestError as error:
        raise ResolutionError(Reason.INVALID_PARAMETERS, f"parameter 'url' {error.problem}") from None
    return url.with_path(url.raw_path, encoded=True, keep_query=True)  # adds / as an empty path


def _strip_query(url: str) -> str:
    return str(URL(url).with_query(None))


def _check_credentials(params: Mapping[str, str]) -> None:
    if "http-username" in params and "http-password-secret" not in params:
        raise build_param_error("http-username", "expected also parameter 'http-password-secret', found none")
    if "http-password-secret" in params and "http-username" not in params:
        raise build_param_error("http-password-secret", "expected also parameter 'http-username', found none")
    for kind in ("password", "token", "query"):
        if f"http-{kind}-secret-key" in params and f"http-{kind}-secret" not in params:
            raise build_param_error(
                f"http-{kind}-secret-key", f"expected also parameter 'http-{kind}-secret', found none"
            )
        check_secret(params, f"http-{kind}-secret", f"http-{kind}-secret-key")
    if "http-username" in params and "http-token-secret" in params:
        raise build_param_error("http-token-secret", "expected a token or a user and a password, found both")
    user = params.get("http-username", "")
    if ":" in user or not user.isprintable():
        raise build_param_error("http-username", "expected a name without a colon, in one line")


def _parse_digest(text: str) -> str:
    algorithm, colon, digits = text.partition(":")
    if not colon:
        raise build_param_error(
            "digest", f"expected sha256: or sha512: before the digits, found no colon in {text[:160]!r}"
        )
    if algorithm not in ("sha256", "sha512"):
        raise build_param_error("digest", f"expected algorithm sha256 or sha512, found {algorithm[:40]!r}")
    try:
        return str(Digest.parse(text))
    except ValueError:
        wanted = 64 if algorithm == "sha256" else 128
        message = (
            f"expected {wanted} hexadecimal digits in lower case after {algorithm}:, found {len(digits)} characters"
        )
        raise build_param_error("digest", message) from None


async def _read_credential(fetch: FetchRequest, url: URL) -> OriginCredential | None:
    kind = next((kind for kind in ("password", "token") if f"http-{kind}-secret" in fetch.params), None)
    if kind is None:
        return None
    value = await _read_secret_value(fetch, url, kind)
    header = f"Bearer {value}" if kind == "token" else encode_basic_auth(str(fetch.params["http-username"]), value)
    return OriginCredential(header, str(url.origin()))


async def _read_secret_query(fetch: FetchRequest, url: URL) -> str:
    """Return the secret part of the query; empty without one."""
    if "http-query-secret" not in fetch.params:
        return ""
    value = (await _read_secret_value(fetch, url, "query")).lstrip("?&")
    if not value or not _QUERY.fullmatch(value):
        message = "expected part of a query in the Secret, such as sig=…&se=…, found another text"
        raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, f"parameter 'http-query-secret': {message}")
    return value


def _append_query(url: str, query: str) -> str:
    if not query:
        return url
    return f"{url}{'&' if URL(url).raw_query_string else '?'}{query}"


async def _read_secret_value(fetch: FetchRequest, url: URL, kind: str) -> str:
    """Return one value of the Secret for a kind of credential, after a check of the URL's host."""
    params = {name: str(value) for name, value in fetch.params.items()}
    name, key = params[f"http-{kind}-secret"], params.get(f"http-{kind}-secret-key", kind)
    secrets = fetch.services.secrets
    with name_params_in_errors(f"http-{kind}-secret", f"http-{kind}-secret-key"):
        value = (await secrets.read_value(name, key)).rstrip("\r\n")
        secret = await secrets.read_all(name)
    if not value or not value.isprintable():
        message = f"expected a {kind} in one line in the Secret, found none"
        raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, f"parameter 'http-{kind}-secret': {message}")
    check_host(_find_destination(url), secret, fetch.settings)
    return value


def _find_destination(url: URL) -> _UrlDestination:
    host = url.raw_host or ""
    return _UrlDestination(url.scheme, host, f"{host}:{url.explicit_port}" if url.explicit_port else host)


def _check_type(response: HttpStream, source: str) -> None:
    """Refuse other content than YAML and JSON before it is read, for example a login page or an image."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _PAGES:
        message = f"{source} is a web page ({kind}); expected YAML or JSON"
        if raw := suggest_raw_url(URL(source)):
            message += f"; did you mean {raw}?"
        raise ResolutionError(Reason.UNSUPPORTED_CONTENT, message)
    if kind and not _FILES.fullmatch(kind):
        message = f"{source}: expected YAML or JSON, found media type {kind[:_MAX_TYPE]!r}; correct the Content-Type"
        raise ResolutionError(Reason.UNSUPPORTED_CONTENT, f"{message} of the server, or use the address of a file")
