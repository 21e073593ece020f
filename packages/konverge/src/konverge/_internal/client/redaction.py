"""Redaction of probable secrets in texts of other programs: the standard error of a plug-in, the error of a library.

It hides a harmless word rather than showing a secret. It recognizes secrets by their form and by the text before them.
Patterns start with a fixed word and have a limited length, so that a megabyte of text does not take long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

__all__ = ["find_secret_values", "redact"]

_HIDDEN = "***"

# Shorter values are in many words: hiding them would hide the message.
_MIN_SECRET_LENGTH = 4

_NAMED_SECRET = (
    r"secret|token|passw(?:or)?d|passphrase|passcode|credential|assertion|api[_-]?key|access[_-]?key|private[_-]?key"
)
_SECRET_NAME = re.compile(rf"(?i){_NAMED_SECRET}|(?:^|_)key(?:_|$)|(?:^|_)pass(?:_|$)|(?:^|_)pwd(?:_|$)")

# Variables with these names contain the location of a secret, not the secret.
_LOCATION_NAME = re.compile(r"(?i)(file|path|dir|ur[il]|sock|endpoint)$")
_ORDINARY = frozenset({"true", "false", "none", "null"})

_QUOTE = r"""(?:\\?["'])?"""
_VALUE = r"""(?:\\"[^"]*(?:\\"|"|$)|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"']+)"""

_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]{1,40}-----.*?(?:-----END [A-Z ]{1,40}-----|\Z)", re.DOTALL),
    re.compile(r"(?<![\w-])eyJ[\w-]+\.[\w-]+(\.[\w-]*)?"),  # a JSON web token
    re.compile(rf"(?i)(?P<kept>(?:authorization|cookie){_QUOTE}\s{{0,8}}[:=]\s{{0,8}}{_QUOTE})[^\s\"'][^\r\n\"']*"),
    re.compile(r"""(?i)(?P<kept>\b(?:bearer|basic)\s{1,8})[^\s"']+"""),
    # `token: x`, `"token": "x"`, `CLIENT_SECRET=x`, `{\"token\": \"x\"}`, and `--token x`
    re.compile(rf"(?i)(?P<kept>(?:{_NAMED_SECRET})[\w-]{{0,64}}{_QUOTE}\s{{0,8}}(?:=>|[:=])\s{{0,8}}){_VALUE}"),
    re.compile(rf"(?i)(?P<kept>--(?:[a-z0-9]{{1,20}}-){{0,4}}(?:{_NAMED_SECRET})[\w-]{{0,64}}\s{{1,8}}){_VALUE}"),
    re.compile(r"""(?P<kept>://)[^\s"'<>@]{1,256}(?=@)"""),  # the user and the password of a URL
)
_URL_PASSWORD = re.compile(r"://[^\s:/@]*:([^\s@]+)@")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without the given secrets, and without texts that look like secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET_LENGTH:
            text = text.replace(secret, _HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(_replace_secret, text)
    return text


def find_secret_values(environment: Mapping[str, str]) -> Iterator[str]:
    """Find the values of variables with a secret name, and the passwords in URLs."""
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and not _LOCATION_NAME.search(name) and value.lower() not in _ORDINARY:
            yield value
        yield from _URL_PASSWORD.findall(value)


def _replace_secret(match: re.Match[str]) -> str:
    return match.groupdict().get("kept", "") + _HIDDEN
