"""The pages of the documentation and their code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge.operator import Operator

REPOSITORY = Path(__file__).parents[2]


def read_page(page: str) -> str:
    """Return the text of a page."""
    return (REPOSITORY / page).read_text()


def find_code_blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of that language on a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", read_page(page), re.DOTALL | re.MULTILINE)


def save_page_code(page: str, folder: Path, name: str = "shown.py") -> Path:
    """Save the Python code of a page in one file, as its reader would."""
    file = folder / name
    file.write_text("\n\n".join(find_code_blocks(page, "python")))
    return file


def load_page_operator(page: str, folder: Path) -> Operator:
    """Return the operator in the code of a page."""
    return load_operator(parse_operator_reference(str(save_page_code(page, folder))))


def find_commands(page: str) -> list[list[str]]:
    """Return the commands of a page's consoles as lists of words."""
    consoles = "".join(find_code_blocks(page, "console")).replace("\\\n", "")
    return [shlex.split(line[2:], comments=True) for line in consoles.splitlines() if line.startswith("$ ")]
