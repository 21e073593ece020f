"""The values of Secrets that a process has read, for redaction in texts from servers. Pure.

A text can contain a value unchanged, in base64, escaped in one of many ways, or only in part: servers shorten what they
quote. So the comparison uses only letters and digits, without escapes, and finds parts. An index contains short samples
of each value. The search passes over a text once, for any number of values, and extends the match of a sample as far as
text and value agree.
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

from konverge._internal.kube.objects import Object
from konverge._internal.message_text import shorten

__all__ = ["SecretValues"]

_HIDDEN = "***"

_MIN_LENGTH = 4  # shorter values are in many words: hiding them would hide the text
_SAMPLE = 6
_STRIDE = 16
_LONG_ENOUGH = _SAMPLE + _STRIDE - 1  # each part of that length contains a sample
_MAX_LENGTH = 2048  # only the beginning of a longer value is recognized: a shortened quotation shows the beginning
_MAX_ODD_LENGTH = 256
_MAX_PATTERNS = 32  # each takes milliseconds to compile and to search
_MAX_TEXT_LENGTH = 65_536  # no one reads more, and an error about a large object may repeat the whole object
_MAX_FORMS = 8192
_MAX_SAMPLES = 32_768
_MAX_PER_SAMPLE = 32

_ORDINARY = frozenset({"true", "false", "none", "null"})
_WORD = re.compile(r"""[^\s"'`,;:(){}\[\]<>=&\\]+""")
_BREAK = re.compile(r"""[^A-Za-z0-9]*?(?:\.\.\.|…|\[truncated|<truncated|\Z)""")
# Letters and digits, or other pieces: an escape of JSON, Go, Python, of a URL or of HTML, or a character that one of
# these may escape.
_HTML_ESCAPE = "&(?:#(?:[0-9]{1,6}|[xX][0-9a-fA-F]{1,6})|[a-z]{2,6});"
_ESCAPES = rf"\\{{1,8}}(?:u[0-9a-fA-F]{{4}}|x[0-9a-fA-F]{{2}}|[abfnrtv0])|%[0-9a-fA-F]{{2}}|{_HTML_ESCAPE}"
_PIECE = re.compile(rf"{_ESCAPES}|([A-Za-z0-9]+)|[^A-Za-z0-9\\%&]+|[\\%&]")
# The parts of a file or URL that may be copied separately: a line, the text after its first colon or equals sign, a
# string in JSON, the password of a URL.
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
    """The letters and digits of a text, with their positions in it."""

    def __init__(self, text: str) -> None:
        runs = [(match[0], match.start()) for match in _PIECE.finditer(text) if match[1]]
        self.text = "".join(run for run, _ in runs)
        self.positions = [position for run, start in runs for position in range(start, start + len(run))]


@dataclass(frozen=True, slots=True)
class _ValueForm:
    """A value in the form for comparisons, and the other characters with which it begins and ends."""

    letters: str
    before: str
    after: str


@dataclass(slots=True)
class _ValueIndex:
    """An index of samples of values, for one pass over a text."""

    versions: dict[tuple[str, str], object] = field(default_factory=dict)
    wholes: set[str] = field(default_factory=set)
    samples: dict[str, list[tuple[_ValueForm, int]]] = field(default_factory=dict)
    odd: dict[str, re.Pattern[str] | None] = field(default_factory=dict)
    """Values that have too few letters for a sample; each has its pattern after the first search."""

    def add_value(self, value: str) -> None:
        value = value[:_MAX_LENGTH]
        if value in self.wholes:
            return
        self.wholes.add(value)
        letters = _TextLetters(value)
        if len(letters.text) >= _SAMPLE:
            form = _ValueForm(letters.text, value[: letters.positions[0]], value[letters.positions[-1] + 1 :])
            last = len(letters.text) - _SAMPLE
            for at in {*range(0, last, _STRIDE), last}:
                entries = self.samples.setdefault(letters.text[at : at + _SAMPLE], [])
                if len(entries) < _MAX_PER_SAMPLE:
                    entries.append((form, at))
        elif len(value) >= _SAMPLE:
            self.odd[value] = None

    def find_spans(self, text: str, letters: _TextLetters) -> Iterator[tuple[int, int]]:
        """Find the positions of values in the text, and of parts that are long enough to recognize."""
        for word in _WORD.finditer(text):
            bare = word[0].rstrip(".")
            if len(bare) < _SAMPLE and bare in self.wholes:
                yield word.start(), word.start() + len(bare)
        yield from self._find_odd_spans(text)
        at = 0
        while at <= len(letters.text) - _SAMPLE:
            end = at
            entries = self.samples.get(letters.text[at : at + _SAMPLE], ())
            for form, offset in entries:
                start, stop = _find_common_part(letters.text, at, form.letters, offset)
                first, last = letters.positions[start], letters.positions[stop - 1] + 1
                is_start, is_end = at - start == offset, stop - at + offset == len(form.letters)
                is_cut = is_start and bool(_BREAK.match(text, last))
                # A sample with the maximum number of entries may belong to values that have no entry: hide it.
                if (is_start and is_end) or is_cut or stop - start >= _LONG_ENOUGH or len(entries) == _MAX_PER_SAMPLE:
                    while is_start and first and text[first - 1] in form.before:
                        first -= 1
                    while is_end and last < len(text) and text[last] in form.after:
                        last += 1
                    yield first, last
                    end = max(end, stop)
            at = max(at + 1, end - _SAMPLE + 1)

    def _find_odd_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Find the positions of values with few letters: the first 32 in any escaped form, the others unescaped."""
        for number, (value, pattern) in enumerate(self.odd.items()):
            if number >= _MAX_PATTERNS:
                pattern = re.compile(re.escape(value)) if value in text else None
            elif pattern is None:
                pattern = self.odd[value] = _compile_odd_pattern(value)
            if pattern is not None:
                yield from (match.span() for match in pattern.finditer(text))


def _compile_odd_pattern(value: str) -> re.Pattern[str]:
    """Compile the pattern for a value with few letters: each character is unescaped or escaped in one of many ways."""
    parts = []
    last = ""
    for char in value[:_MAX_ODD_LENGTH]:
        before, last = last, char
        if char == "\\":
            # Match a run of backslashes as a whole, without backtracking: there are too many ways to split it.
            if before != char:
                parts.append(r"(?:\\|%5c|&(?:#92|#x5c|bsol);)++")
            continue
        least = 0 if before == "\\" else 1
        code = f"(?:u{ord(char):04x}|x{ord(char):02x})" if char.isprintable() else "(?:u....|x..|[abfnrtv0])"
        quoted = quote(char, safe="", errors="replace") + (r"|\+" if char == " " else "")
        parts.append(rf"(?:\\{{0,8}}{re.escape(char)}|\\{{{least},8}}{code}|{quoted}|&#?\w+;)")
    return re.compile("".join(parts), re.IGNORECASE)


def _find_common_part(text: str, at: int, form: str, offset: int) -> tuple[int, int]:
    """Find the longest common part of the text around a position and the form around an offset."""
    back = 0
    while back < min(at, offset) and text[at - back - 1] == form[offset - back - 1]:
        back += 1
    ahead = _SAMPLE
    while at + ahead < len(text) and offset + ahead < len(form) and text[at + ahead] == form[offset + ahead]:
        ahead += 1
    return at - back, at + ahead


class SecretValues:
    """The values of Secrets to hide.

    The number of values has a limit; the values that were added the longest time ago are removed first.
    """

    def __init__(self) -> None:
        self._now, self._before = _ValueIndex(), _ValueIndex()

    def add(self, obj: Object) -> None:
        """Add the values of an object if it is a Secret."""
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
                    continue  # not a text, so it can only appear as base64
        for text in texts.values() if isinstance(texts, dict) else ():
            if isinstance(text, str):
                self.add_text(text)
        self._now.versions[key] = version

    def add_text(self, text: str) -> None:
        """Add one value and its recognizable parts."""
        if not text.strip():
            return
        text = text[:_MAX_LENGTH]
        for form in (text, text.strip(), base64.b64encode(text.encode(errors="replace")).decode().rstrip("=")):
            self._add_form(form)
        for pattern in _PARTS:
            for match in pattern.finditer(text):
                self._add_form(match[1])

    def hide(self, text: str, *, public: Collection[str] = ()) -> str:
        """Return the text with three asterisks for each value, and for each part that is long enough to recognize.

        Args:
            text: The text to redact.
            public: Values to show nevertheless: the names of objects.
        """
        if not (self._now.wholes or self._before.wholes):
            return text
        text = shorten(text, _MAX_TEXT_LENGTH)
        parts: list[str] = []
        position = 0
        for start, stop in self._find_spans(text, public):
            if stop <= position:
                continue
            if start > position or not parts:
                parts += [text[position:start], _HIDDEN]
            position = stop
        return "".join([*parts, text[position:]])

    def is_in(self, value: Any) -> bool:
        """Return True if a field or its contents include one of the values."""
        if not (self._now.wholes or self._before.wholes):
            return False
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        return text in self._now.wholes or text in self._before.wholes or bool(self._find_spans(text))

    def _find_spans(self, text: str, public: Collection[str] = ()) -> list[tuple[int, int]]:
        letters = _TextLetters(text)
        spans = sorted({*self._now.find_spans(text, letters), *self._before.find_spans(text, letters)})
        values = ((start, stop, text[start:stop]) for start, stop in spans)
        return [
            (start, stop)
            for start, stop, value in values
            if len(value) >= _MIN_LENGTH and value not in public and value.lower() not in _ORDINARY
        ]

    def _add_form(self, form: str) -> None:
        if len(self._now.wholes) >= _MAX_FORMS or len(self._now.samples) >= _MAX_SAMPLES:
            self._now, self._before = _ValueIndex(), self._now
        self._now.add_value(form)
