"""Every command of konverge on a page has a name, options and arguments that the program accepts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from konverge._internal.cli.main import konverge
from tests.docs.pages import REPOSITORY

PAGES = [
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "packages/*/README.md")
    for page in REPOSITORY.glob(pattern)
    if page.name != "CHANGELOG.md"
]
_CONSOLE = re.compile(r"^```(?:console|text|sh|shell|bash)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"^    (konverge .*)$", re.MULTILINE)
_INLINE = re.compile(r"`(konverge [a-z][^`]*)`")
_DOTS = {"...", "…"}  # placeholders for more words
_PLUGIN = ["resolve", "bucket"]  # the resolver that its page writes


def list_commands(text: str) -> list[list[str]]:
    """Return the words of each command of konverge in the consoles of a page."""
    lines: list[str] = []
    for console in _CONSOLE.findall(text):
        lines += (line[2:] for line in console.replace("\\\n", "").splitlines() if line.startswith("$ "))
    lines += _INDENTED.findall(text)
    lines += (" ".join(line.split()) for line in _INLINE.findall(text) if "[" not in line and "`" not in line)
    commands: list[list[str]] = []
    for line in lines:
        lexer = shlex.shlex(re.sub(r"\s#\s.*", "", line), posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split, lexer.commenters = True, ""  # "#" is also a part of a URL
        part: list[str] = []
        for word in [*lexer, ";"]:
            if word[0] in "|&;<>()":
                commands.append(part)
                part = []
            else:
                part.append(word)
    return [
        command[1:]
        for command in commands
        if command[:1] == ["konverge"] and not _DOTS & set(command) and command[1:3] != _PLUGIN
    ]


def find_error(words: list[str]) -> str:
    """Return the program's error for a command line, without running it; empty without one."""
    command: click.Command = konverge
    ctx = click.Context(konverge, info_name="konverge")
    arguments = list(words)
    try:
        while isinstance(command, click.Group):
            if not arguments or arguments[0].startswith("-"):
                return ""  # words about a group, without one of its commands
            name, found, arguments = command.resolve_command(ctx, arguments)
            assert found is not None  # otherwise the group has raised an error
            command, ctx = found, click.Context(found, parent=ctx, info_name=name)
        command.make_parser(ctx).parse_args(arguments)
    except click.UsageError as error:
        return error.format_message()
    return ""


COMMANDS = [(page, words) for page in PAGES for words in list_commands(page.read_text())]


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=[f"{page.relative_to(REPOSITORY)}: {' '.join(words)}" for page, words in COMMANDS]
)
def test_a_command_of_a_page_is_one_of_the_program(page: Path, words: list[str]) -> None:
    assert find_error(words) == ""


def test_many_commands_are_found() -> None:
    assert len(COMMANDS) > 200
