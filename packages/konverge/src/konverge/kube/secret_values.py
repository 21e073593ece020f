"""The values of Secrets that a process has met, by which they are known again in the texts of others. Pure.

A text repeats a value as it is, in base64, escaped in one of many ways, or only a part of it: servers shorten what they
quote. So value and text are compared by their letters and digits alone, without escapes, and not as a whole. Short
samples of each value are kept in an index; a text is walked through once, whatever the number of values is, and a
sample that is found is followed as far as text and value agree.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from konverge.kube.objects import Object

__all__ = ["SecretValues"]

_HIDDEN = "***"

_MIN_LENGTH = 4  # a shorter value is in every other word: hiding it would hide the text
_SAMPLE = 6
_STRIDE = 16
_LONG_ENOUGH = _SAMPLE + _STRIDE - 1  # a part of that length has a sample in it
_MAX_LENGTH = 2048  # of a longer value the beginning is known again, which is what a shortened quotation shows
_MAX_ODD_LENGTH = 256
_MAX_PATTERNS = 32  # each takes milliseconds to compile and to look for
_MAX_TEXT_LENGTH = 65_536  # nobody reads more, and what refuses a large object may repeat all of it
_MAX_FORMS = 8192
_MAX_SAMPLES = 32_768
_MAX_PER_SAMPLE = 32

_ORDINARY = frozenset({"true", "false", "none", "null"})
_WORD = re.compile(r"""[^\s"'`,;:(){}\[\]<>=&\\]+""")
_BREAK = re.compile(r"""[^A-Za-z0-9]*?(?:\.\.\.|…|\[truncated|<truncated|\Z)""")
# Letters and digits, or what else there is: an escape of JSON, Go, Python, of a URL or of HTML, or something that each
# of these may write as one.
_ESCAPES = r"\\{1,8}(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[abfnrtv0])|%[0-9a-fA-F]{2}|&(?:#[0-9]{1,6}|[a-z]{2,6});"
_PIECE = re.compile(rf"{_ESCAPES}|([A-Za-z0-9]+)|[^A-Za-z0-9\\%&]+|[\\%&]")
# What of a file or an address may be copied alone: a line, what stands behind its first colon or equals sign, a text in
# JSON, the password of a URL.
_PARTS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^\s*(\S.{6,}\S)\s*$",
        r"""^[^\n:=]{1,64}[:=]\s*["']?([^\n"']{8,}?)["']?\s*$""",
        r'"((?:[^"\\\n]|\\.){8,})"\s*[,}\]\n]',
        r"://[^\s:/@]*:([^\s@/]{4,})@",
    )
)


class _TextLetters:
    """The letters and digits of a text, and where in it each of them is."""

    def __init__(self, text: str) -> None:
        runs = [(found[0], found.start()) for found in _PIECE.finditer(text) if found[1]]
        self.text = "".join(run for run, _ in runs)
        self.places = [place for run, start in runs for place in range(start, start + len(run))]


@dataclass(frozen=True, slots=True)
class _ValueForm:
    """A value as it is compared, and the signs with which it begins and ends."""

    letters: str
    before: str
    after: str


@dataclass(slots=True)
class _ValueIndex:
    """Samples of values, for texts to be walked through."""

    versions: dict[tuple[str, str], object] = field(default_factory=dict)
    wholes: set[str] = field(default_factory=set)
    samples: dict[str, list[tuple[_ValueForm, int]]] = field(default_factory=dict)
    odd: dict[str, re.Pattern[str] | None] = field(default_factory=dict)
    """Values that have too few letters for a sample, each with its pattern once it was looked for."""

    def add_value(self, value: str) -> None:
        value = value[:_MAX_LENGTH]
        if value in self.wholes:
            return
        self.wholes.add(value)
        found = _TextLetters(value)
        if len(found.text) >= _SAMPLE:
            form = _ValueForm(found.text, value[: found.places[0]], value[found.places[-1] + 1 :])
            last = len(found.text) - _SAMPLE
            for at in {*range(0, last, _STRIDE), last}:
                listed = self.samples.setdefault(found.text[at : at + _SAMPLE], [])
                if len(listed) < _MAX_PER_SAMPLE:
                    listed.append((form, at))
        elif len(value) >= _SAMPLE:
            self.odd[value] = None

    def find_spans(self, text: str, found: _TextLetters) -> Iterator[tuple[int, int]]:
        """Where in the text values are, or parts of them that are long enough to tell."""
        for word in _WORD.finditer(text):
            bare = word[0].rstrip(".")
            if len(bare) < _SAMPLE and bare in self.wholes:
                yield word.start(), word.start() + len(bare)
        yield from self._find_odd_spans(text)
        at = 0
        while at <= len(found.text) - _SAMPLE:
            end = at
            listed = self.samples.get(found.text[at : at + _SAMPLE], ())
            for form, offset in listed:
                start, stop = _find_common_part(found.text, at, form.letters, offset)
                first, last = found.places[start], found.places[stop - 1] + 1
                is_start, is_end = at - start == offset, stop - at + offset == len(form.letters)
                is_cut = is_start and bool(_BREAK.match(text, last))
                # Of a sample that so many values share nobody can tell which one it is.
                if (is_start and is_end) or is_cut or stop - start >= _LONG_ENOUGH or len(listed) == _MAX_PER_SAMPLE:
                    while is_start and first and text[first - 1] in form.before:
                        first -= 1
                    while is_end and last < len(text) and text[last] in form.after:
                        last += 1
                    yield first, last
                    end = max(end, stop)
            at = max(at + 1, end - _SAMPLE + 1)

    def _find_odd_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where values of few letters are: the first 32 in any spelling, any more of them as they are."""
        for number, (value, pattern) in enumerate(self.odd.items()):
            if number >= _MAX_PATTERNS:
                pattern = re.compile(re.escape(value)) if value in text else None
            elif pattern is None:
                pattern = self.odd[value] = _compile_odd_pattern(value)
            if pattern is not None:
                yield from (repeated.span() for repeated in pattern.finditer(text))


def _compile_odd_pattern(value: str) -> re.Pattern[str]:
    """What finds a value that has few letters: sign by sign, each as it is or escaped in one of many ways."""
    signs = []
    last = ""
    for sign in value[:_MAX_ODD_LENGTH]:
        before, last = last, sign
        if sign == "\\":
            # A run of them as a whole, and no way back into it: one by one there would be endlessly many ways.
            if before != sign:
                signs.append(r"(?:\\|%5c|&(?:#92|#x5c|bsol);)++")
            continue
        least = 0 if before == "\\" else 1
        code = f"(?:u{ord(sign):04x}|x{ord(sign):02x})" if sign.isprintable() else "(?:u....|x..|[abfnrtv0])"
        quoted = quote(sign, safe="", errors="replace") + (r"|\+" if sign == " " else "")
        signs.append(rf"(?:\\{{0,8}}{re.escape(sign)}|\\{{{least},8}}{code}|{quoted}|&#?\w+;)")
    return re.compile("".join(signs), re.IGNORECASE)


def _find_common_part(text: str, at: int, form: str, offset: int) -> tuple[int, int]:
    """The longest part of the text around a place that is part of the form around the offset."""
    back = 0
    while back < min(at, offset) and text[at - back - 1] == form[offset - back - 1]:
        back += 1
    ahead = _SAMPLE
    while at + ahead < len(text) and offset + ahead < len(form) and text[at + ahead] == form[offset + ahead]:
        ahead += 1
    return at - back, at + ahead


class SecretValues:
    """Values that may not be shown.

    It remembers as many as it has room for; those that were not met for longest are forgotten first.
    """

    def __init__(self) -> None:
        self._now, self._before = _ValueIndex(), _ValueIndex()

    def add(self, obj: Object) -> None:
        """Remember the values of an object if it is a Secret."""
        if obj.get("kind") != "Secret" or obj.get("apiVersion") != "v1":
            return
        metadata = obj.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        key, version = (str(metadata.get("namespace")), str(metadata.get("name"))), metadata.get("resourceVersion")
        if version is not None and self._now.versions.get(key) == version:
            return
        data, texts = obj.get("data"), obj.get("stringData")
        for encoded in data.values() if isinstance(data, dict) else ():
            if isinstance(encoded, str):
                self._add_form(encoded.rstrip("="))
                self._now.wholes.add(encoded)
                try:
                    self.add_text(base64.b64decode(encoded, validate=True).decode())
                except (binascii.Error, ValueError):
                    continue  # no text, so it can be copied as base64 alone
        for text in texts.values() if isinstance(texts, dict) else ():
            if isinstance(text, str):
                self.add_text(text)
        self._now.versions[key] = version

    def add_text(self, text: str) -> None:
        """Remember one value."""
        if not text.strip():
            return
        text = text[:_MAX_LENGTH]
        for form in (text, text.strip(), base64.b64encode(text.encode(errors="replace")).decode().rstrip("=")):
            self._add_form(form)
        for pattern in _PARTS:
            for found in pattern.finditer(text):
                self._add_form(found[1])

    def hide(self, text: str, *, public: Collection[str] = ()) -> str:
        """The text with three asterisks for each value, and for each part of one that is long enough to tell.

        Args:
            text: The text.
            public: What is shown although it is a value too: the names of objects.
        """
        if not (self._now.wholes or self._before.wholes):
            return text
        if len(text) > _MAX_TEXT_LENGTH:
            text = f"{text[:_MAX_TEXT_LENGTH]}…"
        parts: list[str] = []
        shown = 0
        for start, stop in self._find_spans(text, public):
            if stop <= shown:
                continue
            if start > shown or not parts:
                parts += [text[shown:start], _HIDDEN]
            shown = stop
        return "".join([*parts, text[shown:]])

    def is_in(self, value: Any) -> bool:
        """Tell whether one of them is in the value of a field, or in what is below it."""
        if not (self._now.wholes or self._before.wholes):
            return False
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        return text in self._now.wholes or text in self._before.wholes or bool(self._find_spans(text))

    def _find_spans(self, text: str, public: Collection[str] = ()) -> list[tuple[int, int]]:
        letters = _TextLetters(text)
        found = sorted({*self._now.find_spans(text, letters), *self._before.find_spans(text, letters)})
        values = ((start, stop, text[start:stop]) for start, stop in found)
        return [
            (start, stop)
            for start, stop, value in values
            if len(value) >= _MIN_LENGTH and value not in public and value.lower() not in _ORDINARY
        ]

    def _add_form(self, form: str) -> None:
        if len(self._now.wholes) >= _MAX_FORMS or len(self._now.samples) >= _MAX_SAMPLES:
            self._now, self._before = _ValueIndex(), self._now
        self._now.add_value(form)
