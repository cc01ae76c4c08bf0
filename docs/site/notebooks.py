"""Makes the notebooks of the tutorials from their pages, and runs them.

    python docs/site/notebooks.py [NAME…]     all tutorials, or those named

A page is the source; ``docs/notebooks/NAME.ipynb`` has its prose and its Python, with what that prints and draws.
``scripts/notebooks`` installs what is needed.
"""

from __future__ import annotations

import posixpath
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ROOT / "crates/sparsegp-python/docs"
# outputs are committed: readers see pictures without running anything, seeds make them the same on every machine up to rounding,
# and each file is small; nothing that is timed may be printed, which the test of notebooks cannot see
NOTEBOOKS = ROOT / "docs/notebooks"
# how pages of another kind are called
NOT_TUTORIALS = ("from-gpflow-gpytorch",)
FENCE = re.compile(r"^(`{3,})([\w-]*)\s*$")
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")

# before the first cell and not part of the notebook: warnings without the places of files, pictures of a few kB, and no
# descriptions of objects, which hold addresses
SETUP = """
import warnings

import matplotlib.pyplot as plt

warnings.formatwarning = lambda message, category, *rest, **more: f"{category.__name__}: {message}\\n"
get_ipython().ast_node_interactivity = "none"
get_ipython().run_line_magic("matplotlib", "inline")
plt.rcParams["figure.dpi"] = 70
"""


def tutorials() -> list[str]:
    """The names of the pages that have notebooks."""
    return sorted(page.stem for page in PAGES.glob("*.md") if page.stem not in NOT_TUTORIALS)


def cells(page: Path) -> list[tuple[str, str]]:
    """The cells of a page: kind (markdown or code) and text.

    The paragraph that leads to the notebook is left out, and so are blocks of text right after Python: they are its output.
    """
    lines = page.read_text(encoding="utf-8").splitlines()
    out: list[tuple[str, str]] = []
    prose: list[str] = []
    number = 0
    while number < len(lines):
        start = FENCE.match(lines[number])
        if start is None:
            prose.append(relinked(lines[number], page))
            number += 1
            continue
        end = lines.index(start[1], number + 1)
        follows = bool(out) and out[-1][0] == "code" and not "".join(prose).strip()
        if start[2] == "python":
            add_prose(out, prose, page.stem)
            out.append(("code", "\n".join(lines[number + 1 : end])))
        elif not (start[2] == "text" and follows):
            prose += lines[number : end + 1]
        number = end + 1
    add_prose(out, prose, page.stem)
    return out


def add_prose(out: list[tuple[str, str]], prose: list[str], stem: str) -> None:
    """Makes a cell of the paragraphs so far."""
    paragraphs = re.split(r"\n{2,}", "\n".join(prose).strip())
    text = "\n\n".join(p for p in paragraphs if f"({stem}.ipynb)" not in p)
    if text.strip():
        out.append(("markdown", text))
    prose.clear()


def relinked(line: str, page: Path) -> str:
    """A line of prose with links as they are from the folder of notebooks, of which tutorials are their notebooks."""

    def link(match: re.Match[str]) -> str:
        at = posixpath.normpath(posixpath.join(page.parent.relative_to(ROOT).as_posix(), match[1]))
        folder = PAGES.relative_to(ROOT).as_posix()
        if posixpath.dirname(at) == folder and posixpath.basename(at)[: -len(".md")] in tutorials():
            at = f"{NOTEBOOKS.relative_to(ROOT).as_posix()}/{Path(at).stem}.ipynb"
        return f"]({posixpath.relpath(at, NOTEBOOKS.relative_to(ROOT).as_posix())}"

    return LINK.sub(link, line)


def made(page: Path) -> Any:
    """The notebook of a page, run."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook()
    book.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    makers = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    book.cells = [makers[kind](text) for kind, text in [("code", SETUP), *cells(page)]]
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            book, timeout=600, record_timing=False, coalesce_streams=True, resources=resources
        ).execute()
    del book.cells[0]
    run = 0
    for number, cell in enumerate(book.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        if cell.cell_type == "code":
            run += 1
            cell.execution_count = run
            for output in cell.outputs:
                if output.output_type == "display_data":
                    # sizes of pictures, and their descriptions
                    output.metadata = {}
                    output.data.pop("text/plain", None)
    nbformat.validate(book)
    return book


def main() -> int:
    import nbformat

    NOTEBOOKS.mkdir(exist_ok=True)
    for name in sys.argv[1:] or tutorials():
        book = made(PAGES / f"{name}.md")
        file = NOTEBOOKS / f"{name}.ipynb"
        nbformat.write(book, file)
        print(f"{file.relative_to(ROOT)}: {file.stat().st_size // 1000} kB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
