"""Concise references: one URL in place of a resolver and its parameters. Pure.

    git+https://host/path@revision#file         git: a branch, a tag or a commit; without it the default
    oci://registry/repository:tag#kind/name     bundles: also @sha256:…, without a kind, or the path of a file
    hub://kind/name@version                     hub: a version or a range; also hub://catalog/kind/name@version
    cluster://namespace/kind/name               cluster
    https://host/path?query                     http

Further parameters are in the query (``?gitToken=boxes``), before the ``#`` or at the end as in Tekton's TEP-0154. For
http the query belongs to the URL. Characters with a meaning are percent-encoded: a ``@`` in the path of a repository is
``%40``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from konverge._internal.suggestions import did_you_mean
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason

__all__ = ["find_concise_scheme", "parse_concise_reference"]

_MAX_LENGTH = 4096
_MAX_SCHEME = 20
_FILES = (".yaml", ".yml", ".json")
_SEPARATOR = "://"
_Params: TypeAlias = dict[str, str]


def find_concise_scheme(value: object) -> str:
    """Return the scheme of a value that has the beginning of a concise reference; empty for another value."""
    scheme, separator, _ = value.partition(_SEPARATOR) if isinstance(value, str) else ("", "", "")
    return scheme.lower() if separator and scheme.lower() in _FORMS else ""


def parse_concise_reference(text: str) -> tuple[str, dict[str, str]]:
    """Return the resolver and the parameters that a concise reference stands for.

    The resolver checks the parameters, as those of any reference.

    Args:
        text: The URL.

    Raises:
        ResolutionError: ``InvalidParams``: the text has another form. The message does not repeat it, since it may
            contain a credential.
    """
    scheme = find_concise_scheme(text)
    if not scheme:
        given = text.partition(_SEPARATOR)[0].lower()[:_MAX_SCHEME]
        raise _build_error(f"one of the schemes {', '.join(_FORMS)}{did_you_mean(given, _FORMS)}")
    if len(text) > _MAX_LENGTH or any(not "!" <= character <= "~" for character in text):
        raise _build_error(f"at most {_MAX_LENGTH} printable characters of ASCII; encode others with %")
    resolver, form, parse = _FORMS[scheme]
    try:
        parts = urlsplit(text)
        if resolver == "http":
            return resolver, parse(parts)
        selector, _, query = parts.fragment.partition("?")
        params = parse(parts._replace(fragment=selector))
        further = parse_qsl(f"{parts.query}&{query}", keep_blank_values=True)
    except ValueError:
        raise _build_error(f"the form {form}") from None
    for name, value in further:
        if name in params:
            message = f"the concise reference: expected each parameter once, found {name[:80]!r} twice"
            raise ResolutionError(Reason.INVALID_PARAMETERS, message)
        params[name] = value
    return resolver, params


def _parse_git(parts: SplitResult) -> _Params:
    path, has_revision, revision = parts.path.partition("@")
    if not parts.netloc or not parts.fragment or (has_revision and not revision):
        raise ValueError
    params = {"url": f"{parts.scheme.removeprefix('git+')}://{parts.netloc}{path}"}
    if has_revision:
        params["revision"] = unquote(revision)
    return {**params, "pathInRepo": unquote(parts.fragment)}


def _parse_oci(parts: SplitResult) -> _Params:
    if not parts.netloc or not parts.path.strip("/") or not parts.fragment:
        raise ValueError
    bundle, selector = f"{parts.netloc}{parts.path}", unquote(parts.fragment)
    kind, _, name = selector.rpartition("/")
    if not kind or selector.endswith(_FILES):
        return {"bundle": bundle, "name": selector}
    return {"bundle": bundle, "kind": kind, "name": name}


def _parse_hub(parts: SplitResult) -> _Params:
    path, _, version = f"{parts.netloc}{parts.path}".partition("@")
    *catalog, kind, name = (unquote(segment) for segment in path.split("/"))
    if len(catalog) > 1 or not all((*catalog, kind, name, version)) or parts.fragment:
        raise ValueError
    params = {"kind": kind, "name": name, "version": unquote(version)}
    return {"catalog": catalog[0], **params} if catalog else params


def _parse_cluster(parts: SplitResult) -> _Params:
    kind, name = (unquote(segment) for segment in parts.path.removeprefix("/").split("/"))
    if not parts.netloc or not kind or not name or parts.fragment:
        raise ValueError
    return {"namespace": parts.netloc, "kind": kind, "name": name}


def _parse_http(parts: SplitResult) -> _Params:
    if not parts.netloc or parts.fragment:
        raise ValueError
    return {"url": parts.geturl()}


_GIT = "git+https://HOST/PATH@REVISION#FILE"
_FORMS: Mapping[str, tuple[str, str, Callable[[SplitResult], _Params]]] = {
    "git+https": ("git", _GIT, _parse_git),
    "git+http": ("git", _GIT, _parse_git),
    "git+ssh": ("git", "git+ssh://USER@HOST/PATH@REVISION#FILE", _parse_git),
    "oci": ("bundles", "oci://REGISTRY/REPOSITORY:TAG#KIND/NAME", _parse_oci),
    "hub": ("hub", "hub://KIND/NAME@VERSION", _parse_hub),
    "cluster": ("cluster", "cluster://NAMESPACE/KIND/NAME", _parse_cluster),
    "https": ("http", "https://HOST/PATH without a fragment", _parse_http),
    "http": ("http", "http://HOST/PATH without a fragment", _parse_http),
}
"""By scheme the resolver, the form for messages, and the parser."""


def _build_error(expected: str) -> ResolutionError:
    return ResolutionError(Reason.INVALID_PARAMETERS, f"the concise reference: expected {expected}, found another")
