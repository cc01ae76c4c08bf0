"""What the documentation says, run: the Python blocks of the pages, and the examples of the docstrings.

The ```python blocks of a page run in order in one namespace, in an empty folder. Where a ```text block
follows one directly, that is what it prints (``...`` stands for anything). Other blocks are not run.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shutil
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import sparsegp

HERE = Path(__file__).resolve().parent.parent
README = HERE / "README.md"
PAGES = [*sorted((HERE / "docs").glob("*.md")), README]
WANTED = (
    "quickstart",
    "regression",
    "classification",
    "counts",
    "big-data",
    "sampling",
    "from-gpflow-gpytorch",
)

# modules whose docstrings must have examples; those of others run too
WITH_EXAMPLES = (
    "sparsegp",
    "sparsegp.estimators._classifier",
    "sparsegp.estimators._regressors",
    "sparsegp.kernels",
    "sparsegp.likelihoods",
    "sparsegp.models",
    "sparsegp.priors",
    "sparsegp.sampling",
)

FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[\w-]*)[ \t]*$")
LINK = re.compile(r"\]\((?!\w+:|#)(?P<target>[^)#\s]+)[^)]*\)")


class Block(NamedTuple):
    """A fenced block: the number of its first line, and its text."""

    language: str
    line: int
    text: str
    # whether nothing but blank lines is between it and the block before
    follows: bool


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    opened = None
    follows = False
    for number, line in enumerate(lines, 1):
        if opened is not None:
            fence, language, first = opened
            if line.rstrip() == fence:
                text = "\n".join(lines[first - 1 : number - 1]) + "\n"
                found.append(Block(language, first, text, follows))
                opened, follows = None, True
            continue
        start = FENCE.match(line)
        if start:
            opened = (start["fence"], start["language"], number + 1)
        elif line.startswith("```"):
            raise ValueError(f"{name(page)}:{number}: this fence is not understood: {line}")
        elif line.strip():
            follows = False
    if opened is not None:
        raise ValueError(f"{name(page)}:{opened[2] - 1}: the block that begins here does not end")
    return found


def name(page: Path) -> str:
    return page.relative_to(HERE).as_posix()


def run(page: Path) -> None:
    """Runs the blocks of a page in the current folder."""
    namespace: dict[str, Any] = {"__name__": f"page_{re.sub(r'[^a-z]', '_', page.stem.lower())}"}
    printed = ""
    after_python = False
    for block in blocks(page):
        if block.language == "python":
            printed = execute(page, block, namespace)
        elif block.language == "text" and block.follows and after_python:
            compare(page, block, printed)
        after_python = block.language == "python"


def execute(page: Path, block: Block, namespace: dict[str, Any]) -> str:
    """Runs a block; returns what it printed."""
    output = io.StringIO()
    failed: str
    try:
        # empty lines before it make numbers of lines those of the page
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(output):
            exec(code, namespace)
        return output.getvalue()
    except SyntaxError as error:
        failed = f"{name(page)}:{error.lineno}: {error.msg}: {error.text}"
    except Exception as error:
        steps = traceback.extract_tb(error.__traceback__)
        own = [step for step in steps if step.filename == str(page)]
        line = own[-1].lineno if own else block.line
        frames = "".join(traceback.format_list(steps[1:]))
        what = "".join(traceback.format_exception_only(type(error), error))
        failed = f"{name(page)}:{line}: {what}\n{frames}{what}"
    pytest.fail(failed, pytrace=False)


def compare(page: Path, block: Block, printed: str) -> None:
    """Whether a block of output is what was printed."""
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if not doctest.OutputChecker().check_output(block.text, printed, options):
        pytest.fail(
            f"{name(page)}:{block.line}: the page says\n{block.text}\nand the code prints\n{printed}",
            pytrace=False,
        )


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder; matplotlib without a display; the number of threads as it was afterwards."""
    threads = sparsegp.num_threads()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg", force=True)
    yield
    importlib.import_module("matplotlib.pyplot").close("all")
    sparsegp.set_num_threads(threads)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_page_runs(page: Path, workplace: None) -> None:
    run(page)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_the_tutorial_runs(workplace: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands, then its Python, in one folder, as one would type them."""
    program = os.environ.get("SPARSEGP_CLI") or shutil.which("sparsegp")
    if program is None or os.name != "posix":
        pytest.skip("the command line is not built, or there is no shell")
    root = HERE.parent.parent
    page = root / "docs" / "tutorial.md"
    monkeypatch.setitem(globals(), "HERE", root)
    path = f"{Path(program).parent}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page):
        commands = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
        for command in commands if block.language == "console" else []:
            environment = {**os.environ, "PATH": path}
            done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"{command}\n{done.stderr}"
    run(page)


def test_the_front_page_runs(workplace: None, monkeypatch: pytest.MonkeyPatch) -> None:
    root = HERE.parent.parent
    page = root / "README.md"
    if not page.exists():
        pytest.skip("this is not a checkout")
    monkeypatch.setitem(globals(), "HERE", root)
    assert any(block.language == "python" for block in blocks(page))
    run(page)


def gallery() -> list[Path]:
    """The pages of the gallery, in a checkout."""
    pages = (HERE.parent.parent / "docs" / "gallery").glob("*.md")
    return sorted(page for page in pages if page.stem != "README")


@pytest.mark.parametrize("page", gallery(), ids=lambda page: page.stem)
def test_the_gallery_runs(page: Path, workplace: None, monkeypatch: pytest.MonkeyPatch) -> None:
    root = HERE.parent.parent
    monkeypatch.setitem(globals(), "HERE", root)
    for table in (root / "testdata" / "data").glob("*.csv.gz"):
        if table.stat().st_size < 100_000:
            shutil.copy(table, table.name)
    run(page)


@pytest.mark.parametrize("wanted", WANTED)
def test_page_exists_and_has_code(wanted: str) -> None:
    found = blocks(HERE / "docs" / f"{wanted}.md")
    assert any(block.language == "python" for block in found)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    code = {block.line + i for block in blocks(page) for i in range(len(block.text.splitlines()))}
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        prose = "" if number in code else re.sub(r"`[^`]*`", "``", line)
        for link in LINK.finditer(prose):
            assert (page.parent / link["target"]).exists(), f"{name(page)}:{number}: {link['target']}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Page\n\n```python\na = 1\n```\n\n```python\nb = a\n1 / 0\n```\n", "page.md:9: ZeroDivisionError"),
        ("```python\na = 1\nassert a == 2\n```\n", "page.md:3: AssertionError"),
        ("\n```python\nprint(1)\n)\n```\n", "page.md:4: unmatched"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "page.md:6: the page says\n2"),
        ("```python\ndef f():\n    return g()\n\nf()\n```\n", "page.md:3: NameError"),
    ],
)
def test_a_failure_names_page_and_line(
    text: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setitem(globals(), "HERE", tmp_path)
    with pytest.raises(pytest.fail.Exception) as failure:
        run(page)
    assert str(failure.value).startswith(expected)


def test_output_is_compared_with_the_block_before_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    text = "```python\nprint(1.25)\n```\n```text\n1.2...\n```\nand a file is\n```text\nno output\n```\n"
    page.write_text(text, encoding="utf-8")
    monkeypatch.setitem(globals(), "HERE", tmp_path)
    run(page)
    page.write_text("```python\n", encoding="utf-8")
    with pytest.raises(ValueError, match="page.md:1: the block that begins here does not end"):
        run(page)


def modules() -> list[str]:
    found = pkgutil.walk_packages(sparsegp.__path__, "sparsegp.")
    return ["sparsegp", *sorted(module.name for module in found if module.name != "sparsegp._core")]


def test_modules_with_examples_are_there() -> None:
    assert set(WITH_EXAMPLES) <= set(modules())


@pytest.mark.parametrize("module", modules())
def test_examples_of_docstrings(module: str, workplace: None) -> None:
    found = importlib.import_module(module)
    assert found.__file__ is not None
    source = Path(found.__file__).read_text(encoding="utf-8")
    written = len(re.findall(r"^\s*>>> ", source, re.MULTILINE))
    tests = doctest.DocTestFinder(exclude_empty=True).find(found)
    # what stands in the source must be what is found: a docstring that is put together may be lost
    assert sum(len(test.examples) for test in tests) == written
    assert written or module not in WITH_EXAMPLES
    report = io.StringIO()
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()
