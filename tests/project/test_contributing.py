"""The names in CONTRIBUTING, the hooks and the issue forms exist, and the worked examples run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.primitives import Operation, Primitive, StaticKind
from konverge_box._internal.expressions.functions import Function

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
TARGETS = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
TEXTS = ["CONTRIBUTING.md", "SECURITY.md", ".github/PULL_REQUEST_TEMPLATE.md", "docs/versioning.md"]
FILE_ROW = re.compile(r"^\| `([\w./-]+)`( \(new\))? \|", re.MULTILINE)
FILE_ROWS = FILE_ROW.findall(PAGE)


def run_block(title: str) -> dict[str, Any]:
    """Run the Python code of one worked example; return its names."""
    (section,) = re.findall(rf"^## Worked example: {title}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    (block,) = re.findall(r"^ *```python\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(textwrap.dedent(block), "CONTRIBUTING.md", "exec"), names)
    return names


@pytest.mark.parametrize(("path", "is_new"), FILE_ROWS)
def test_a_file_that_the_page_names_exists_unless_it_is_new(path: str, is_new: str) -> None:
    assert (ROOT / path).exists() is not bool(is_new)
    assert is_new == "" or (ROOT / path).parent.is_dir() or (ROOT / path).parent.parent.is_dir()


def test_the_paths_of_commands_exist() -> None:
    paths = set(re.findall(r"(?<![\w/.-])(?:packages|tests|tools|docs)/[\w./-]*\w", PAGE))
    new = {path for path, is_new in FILE_ROWS if is_new}

    assert paths
    assert [path for path in sorted(paths - new) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", TEXTS)
def test_the_make_targets_of_a_page_exist(page: str) -> None:
    assert set(re.findall(r"(?:`|\$ )make ([a-z][\w-]*)", (ROOT / page).read_text())) - TARGETS == set()


def test_the_links_of_the_pull_request_template_and_of_the_forms_lead_nowhere_else() -> None:
    texts = [path.read_text() for path in (ROOT / ".github").rglob("*") if path.suffix in (".md", ".yml")]

    assert [text for text in texts if "://" in text] == []


def test_the_modules_that_commands_run_exist() -> None:
    modules = re.findall(r"python -m (konverge[\w.]+)", PAGE)

    assert modules
    for module in modules:
        package, _, rest = module.partition(".")
        source = ROOT / "packages" / package.replace("_", "-") / "src" / package
        assert (source / rest.replace(".", "/")).with_suffix(".py").exists(), module


def test_the_kind_of_the_worked_example_is_one() -> None:
    kind = run_block("a new kind")["LimitRange"]
    primitive: Primitive[Any] = kind({"metadata": {"name": "a", "namespace": "b"}})

    assert issubclass(kind, StaticKind)
    assert primitive.key.name == "a"
    assert primitive.gvk.kind == "LimitRange"
    assert primitive.converging_status({"status": "odd"}, Operation.NONE) is None


def test_the_function_of_the_worked_example_is_one() -> None:
    names = run_block("a new function of expressions")
    function = Function.from_callable(names["capitalize"])

    assert function.signature == "capitalize(text)"
    assert function.call("web") == "Web"
    assert function.call("") == ""
    assert "`Web`" in function.about


def test_the_resolver_of_the_worked_example_is_the_one_of_its_page() -> None:
    page = (ROOT / "docs" / "resolution" / "writing-a-resolver.md").read_text()

    assert 'name = "bucket"' in page


def test_the_good_titles_of_commits_keep_the_rule() -> None:
    titles = [row.split("|")[1].strip(" `") for row in PAGE.splitlines() if re.match(r"\| `[a-z]+: ", row)]

    assert len(titles) == 3
    for title in titles:
        assert re.fullmatch(r"[a-z]+: [a-z].*[^.]", title)
        assert len(title) <= 72


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_the_hosting_requires(form: Path) -> None:
    content = yaml.safe_load(form.read_text())
    fields = [field for field in content["body"] if field["type"] != "markdown"]

    assert content.keys() == {"name", "description", "labels", "body"}
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_hooks_download_nothing_and_run_what_exists() -> None:
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in configuration["repos"] for hook in repository["hooks"]]

    assert [repository["repo"] for repository in configuration["repos"]] == ["local"]
    for hook in hooks:
        program, *arguments = hook["entry"].split()
        assert hook["language"] == "system"
        assert program.startswith(".venv/bin/")
        assert [word for word in arguments if "/" in word and not (ROOT / word).exists()] == []


def test_what_hooks_run_is_part_of_make_check() -> None:
    """A commit that the hooks accept must not fail in CI for the same reason, and vice versa."""
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    entries = [hook["entry"] for repository in configuration["repos"] for hook in repository["hooks"]]
    check = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]

    for entry in entries:
        program, *arguments = entry.removeprefix(".venv/bin/").split()
        assert f"/{' '.join([program, *arguments[:1]])}" in check.replace(" --fix", "")
