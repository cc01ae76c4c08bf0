"""Notebooks of the tutorials: each has the cells of its page, ran without an error, is small, and names no place of a machine.

What they print is compared with the page; ``scripts/notebooks`` makes them again. Nothing of
Jupyter is needed here.
"""

from __future__ import annotations

import doctest
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_docs import HERE, blocks

import sparsegp
from sparsegp import data

ROOT = HERE.parent.parent
SITE = ROOT / "docs" / "site"
MOST_BYTES = 300_000
# folders of whoever made them, and addresses of objects
PLACES = re.compile(r"/(?:home|root|tmp|work|Users|usr|opt)/|site-packages|\b0x[0-9a-f]{6,}|[A-Z]:\\\\")
TUTORIALS = sorted(page.stem for page in (HERE / "docs").glob("*.md") if page.stem != "from-gpflow-gpytorch")


@pytest.fixture
def notebooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    if not SITE.exists():
        pytest.skip("this is not a checkout")
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module("notebooks")


def book_of(name: str) -> tuple[str, dict[str, Any]]:
    """The text of a notebook, and what it holds."""
    text = (ROOT / "docs" / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    return text, json.loads(text)


def printed(cell: dict[str, Any]) -> str:
    """What a cell prints."""
    streams = [output for output in cell["outputs"] if output["output_type"] == "stream"]
    return "".join("".join(output["text"]) for output in streams if output["name"] == "stdout")


def test_every_tutorial_has_a_notebook_and_every_notebook_a_page(notebooks: Any) -> None:
    assert notebooks.tutorials() == TUTORIALS
    assert sorted(path.stem for path in notebooks.NOTEBOOKS.glob("*.ipynb")) == TUTORIALS
    listed = (notebooks.NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    assert [name for name in TUTORIALS if f"({name}.ipynb)" not in listed] == []


@pytest.mark.parametrize("name", TUTORIALS)
def test_cells_are_those_of_the_page(name: str, notebooks: Any) -> None:
    page = notebooks.PAGES / f"{name}.md"
    _, book = book_of(name)
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in book["cells"]]
    assert cells == notebooks.cells(page), f"scripts/notebooks {name} makes it again"
    # a page leads to its notebook at its top
    assert f"](../../../docs/notebooks/{name}.ipynb)" in page.read_text(encoding="utf-8").split("\n## ")[0]


@pytest.mark.parametrize("name", TUTORIALS)
def test_outputs_are_those_of_the_page(name: str, notebooks: Any) -> None:
    _, book = book_of(name)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    own = blocks(notebooks.PAGES / f"{name}.md")
    python = [i for i, block in enumerate(own) if block.language == "python"]
    assert len(code) == len(python)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for cell, i in zip(code, python):
        after = own[i + 1] if i + 1 < len(own) else None
        if after is not None and after.language == "text" and after.follows:
            assert doctest.OutputChecker().check_output(after.text, printed(cell), options), after.text


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_notebook_ran_and_is_small(name: str, notebooks: Any) -> None:
    text, book = book_of(name)
    assert len(text.encode()) < MOST_BYTES
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs and {output["output_type"] for output in outputs} <= {"stream", "display_data"}
    # pictures are base64, in which anything may stand
    shown = [{**output, "data": ""} if "data" in output else output for output in outputs]
    assert PLACES.findall(json.dumps([shown, [cell["source"] for cell in book["cells"]]])) == []


def test_a_page_becomes_cells(notebooks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = tmp_path / "crates/sparsegp-python/docs"
    pages.mkdir(parents=True)
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(notebooks, "PAGES", pages)
    monkeypatch.setattr(notebooks, "NOTEBOOKS", tmp_path / "docs/notebooks")
    (pages / "b.md").write_text("# B\n", encoding="utf-8")
    text = """# A

Take it: [a](../../../docs/notebooks/a.ipynb).

See [b](b.md#there), [c](../../../docs/c.md) and [d](https://example.org).

```python
x = 1

print(x)
```
```text
1
```

```sh
ls
```
```text
a file
```

```python
y = 2
```
"""
    (pages / "a.md").write_text(text, encoding="utf-8")
    assert notebooks.cells(pages / "a.md") == [
        ("markdown", "# A\n\nSee [b](b.ipynb#there), [c](../c.md) and [d](https://example.org)."),
        ("code", "x = 1\n\nprint(x)"),
        ("markdown", "```sh\nls\n```\n```text\na file\n```"),
        ("code", "y = 2"),
    ]


def test_bundled_tables() -> None:
    assert len(data.names()) == 10 and str(data.__doc__).count("``") >= 2 * len(data.names())
    for name in data.names():
        assert f"``{name}``" in str(data.__doc__)
        table = data.load(name)
        assert len(table) >= 72 and not table.isna().any().any()
    with pytest.raises(ValueError, match="no table 'nil'; did you mean 'nile'"):
        data.load("nil")


def test_bundled_tables_are_those_of_the_repository() -> None:
    source = ROOT / "testdata" / "data"
    if not source.exists():
        pytest.skip("this is not a checkout")
    for table in (Path(sparsegp.__file__).parent / "data").glob("*.csv.gz"):
        assert table.read_bytes() == (source / table.name).read_bytes(), table.name
