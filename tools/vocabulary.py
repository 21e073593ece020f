"""Check names and texts against the project's vocabulary: `make check` runs this.

Each rule has a number of allowed findings per area in vocabulary.toml. A count above its allowance fails, and so does
one below it: lower the allowance with --write, so that it only ever shrinks. --list AREA shows what is counted there.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ALLOWANCES = Path(__file__).with_suffix(".toml")
COMMAND = "tools/vocabulary.py"
# How many places a message lists.
MOST_PLACES = 40

# Past participles that do not end in "ed"; words in "ed" that are none.
IRREGULAR = frozenset({
    "told", "shown", "found", "held", "kept", "known", "seen", "made", "written", "sent", "taken", "given", "asked",
    "said", "done", "gone", "built", "bound", "chosen", "drawn", "driven", "lost", "met", "spoken", "thrown",
    "woken", "left", "brought", "bought", "caught", "taught", "heard", "hidden", "begun", "broken", "fallen",
    "forgotten", "frozen", "grown", "laid", "meant", "paid", "risen", "sworn", "torn", "understood", "won", "worn",
    "withdrawn", "overridden", "overwritten",
})  # fmt: skip
NOT_PARTICIPLES = frozenset({
    "need", "seed", "feed", "speed", "embed", "exceed", "succeed", "proceed", "red", "bleed", "breed", "hundred",
})  # fmt: skip
# What is a property reads as a noun; a fixture is what a test receives.
EXEMPT_DECORATORS = frozenset({"property", "cached_property", "setter", "fixture", "overload"})

BANNED_IN_NAMES = re.compile(
    r"(?:^|_)(?:told|tells?|shown|rehears\w*|tenure|upkeep|beside|stories|story|stage|staged|patience"
    r"|whom|nobody|somebody)(?:_|$)",
    re.IGNORECASE,
)
BANNED_IN_CLASSES = re.compile(r"Rehears|Tenure|Upkeep|Story|Patience|Beside")
BANNED_IN_TEXT = re.compile(
    r"\b(?:nobody|somebody|whoever|whomever|whom|is told|are told|was told|says so|say so|of which|all that|so many"
    r"|comes to rest|at rest|rehears\w*|such as it is|be it|lets? itself)\b",
    re.IGNORECASE,
)
SHORTEST_DOCSTRING = 5
# A docstring names what a thing is or does; it does not ask. Conditions ("When …") are no description either.
QUESTION_WORDS = frozenset({"what", "which", "whether", "how", "who", "whose", "where", "why", "when", "if"})
# They contain what they look for.
EXEMPT_FILES = frozenset({"vocabulary.py", "test_vocabulary.py"})

Counts = defaultdict[str, defaultdict[str, int]]


class Finding(NamedTuple):
    """One place that breaks a rule."""

    area: str
    rule: str
    path: str
    line: int
    text: str


def is_participle(word: str) -> bool:
    """Tell whether the word is the past participle of a verb, by its form."""
    return word in IRREGULAR or (len(word) > 3 and word.endswith("ed") and word not in NOT_PARTICIPLES)


def area_of(path: Path) -> str:
    """Name the part of the repository whose allowance counts: a package, or a folder at the root."""
    parts = path.parts
    if "src" in parts[:-1]:
        below = parts[parts.index("src") + 1 :]
        below = tuple(part for part in below if part != "_internal")
        return "/".join(below[:2]) if len(below) > 2 else below[0]
    if parts[0] == "packages":
        return "/".join(parts[1:3]) if len(parts) > 3 else parts[1]
    return parts[0] if len(parts) > 1 else "root"


def findings_in_python(path: Path, source: str) -> Iterator[Finding]:
    """Check names, docstrings, strings and comments of one module."""
    area, shown_path = area_of(path), str(path)
    is_test = "tests" in path.parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None and not is_test and len(docstring.split()) < SHORTEST_DOCSTRING:
                yield Finding(area, "short docstring", shown_path, node.body[0].lineno, docstring)
            if docstring and re.split(r"\W", docstring, maxsplit=1)[0].lower() in QUESTION_WORDS:
                yield Finding(area, "question docstring", shown_path, node.body[0].lineno, docstring.split("\n")[0])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {re.sub(r"\(.*", "", ast.unparse(each)).split(".")[-1] for each in node.decorator_list}
            first = node.name.strip("_").split("_")[0]
            if is_participle(first) and not decorators & EXEMPT_DECORATORS and not node.name.startswith("__"):
                yield Finding(area, "participle function", shown_path, node.lineno, node.name)
            if BANNED_IN_NAMES.search(node.name) and not node.name.startswith("test_"):
                yield Finding(area, "banned name", shown_path, node.lineno, node.name)
        elif isinstance(node, ast.ClassDef) and BANNED_IN_CLASSES.search(node.name):
            yield Finding(area, "banned name", shown_path, node.lineno, node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and BANNED_IN_NAMES.search(node.id):
            yield Finding(area, "banned name", shown_path, node.lineno, node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            for offset, phrase in find_phrases(node.value):
                line = min(node.lineno + offset, node.end_lineno or node.lineno)
                yield Finding(area, "banned phrase", shown_path, line, phrase)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for _, phrase in find_phrases(token.string):
                yield Finding(area, "banned phrase", shown_path, token.start[0], phrase)


def findings_in_markdown(path: Path, source: str) -> Iterator[Finding]:
    """Check the phrases of one page."""
    for offset, phrase in find_phrases(source):
        yield Finding(area_of(path), "banned phrase", str(path), 1 + offset, phrase)


def find_phrases(text: str) -> Iterator[tuple[int, str]]:
    """Find the banned phrases of a text, each with the offset of its line."""
    for offset, line in enumerate(text.split("\n")):
        for match in BANNED_IN_TEXT.finditer(line):
            yield offset, match.group()


def find_all() -> list[Finding]:
    """Check every Python module and Markdown page that git knows, but for generated ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    findings: list[Finding] = []
    for name in sorted(listed):
        path = Path(name)
        if "types" in path.parts or not (ROOT / path).is_file() or path.name in EXEMPT_FILES:
            continue
        source = (ROOT / path).read_text(encoding="utf-8")
        findings.extend((findings_in_python if path.suffix == ".py" else findings_in_markdown)(path, source))
    return findings


def count(findings: list[Finding]) -> Counts:
    """Count the findings of each rule in each area."""
    counts: Counts = defaultdict(lambda: defaultdict(int))
    for each in findings:
        counts[each.rule][each.area] += 1
    return counts


def compare(findings: list[Finding], allowed: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Describe each count that differs from its allowance, in either direction."""
    counts = count(findings)
    problems = []
    for rule in sorted(allowed.keys() | counts.keys()):
        for area in sorted(allowed.get(rule, {}).keys() | counts[rule].keys()):
            found, allowance = counts[rule][area], allowed.get(rule, {}).get(area, 0)
            if found > allowance:
                problems.append(f"{area}: {rule}: expected at most {allowance}, found {found}:")
                places = [each for each in findings if (each.area, each.rule) == (area, rule)]
                problems.extend(f"    {each.path}:{each.line}: {each.text}" for each in places[:MOST_PLACES])
            elif found < allowance:
                problems.append(f"{area}: {rule}: {found} are left of {allowance} allowed: run {COMMAND} --write")
    return problems


def main() -> int:
    """Compare what is found with what is allowed; return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="write the present counts as the allowances")
    arguments.add_argument("--list", metavar="AREA", help="list the findings of areas that start with this")
    options = arguments.parse_args()
    findings = find_all()
    if options.list is not None:
        for each in findings:
            if each.area.startswith(options.list):
                print(f"{each.path}:{each.line}: {each.rule}: {each.text}")
        return 0
    if options.write:
        lines = [f"# Allowed findings of {COMMAND} by rule and area. They only shrink.\n"]
        for rule, areas in sorted(count(findings).items()):
            lines.append(f'["{rule}"]\n')
            lines.extend(f'"{area}" = {found}\n' for area, found in sorted(areas.items()))
            lines.append("\n")
        ALLOWANCES.write_text("".join(lines).rstrip() + "\n", encoding="utf-8")
        return 0
    problems = compare(findings, tomllib.loads(ALLOWANCES.read_text(encoding="utf-8")))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
