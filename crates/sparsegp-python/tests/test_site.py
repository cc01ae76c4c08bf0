"""The layout of the documentation site, and the check of its links (``docs/site``)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).resolve().parent.parent.parent.parent / "docs" / "site"


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Any:
    if not SITE.exists():
        pytest.skip("this is not a checkout")
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module("stage")


def test_pages_have_their_places_and_links_lead_somewhere(stage: Any) -> None:
    found = stage.Stage()
    for page in found.pages:
        if page.endswith(".md"):
            found.text(page)
    assert found.problems == []
    assert len(set(found.pages.values())) == len(found.pages) > 60


def test_what_is_wrong_is_found(stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs" / "site" / "api").mkdir(parents=True)
    (tmp_path / "crates" / "sparsegp-python" / "docs").mkdir(parents=True)
    text = """# Front
[a](docs/a.md#two-words) [b](docs/b.md) [c](docs/a.md#three) `[d](e.md)` `crate::x::Y`
```
[f](g.md)
```
![h](docs/h.svg) [i](https://example.org/j.md)
"""
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    (tmp_path / "docs" / "a.md").write_text("# A\n## Two `words`\n", encoding="utf-8")
    (tmp_path / "docs" / "lost.md").write_text("# Lost\n", encoding="utf-8")
    (tmp_path / "Cargo.toml").write_text("", encoding="utf-8")
    monkeypatch.setattr(stage, "ROOT", tmp_path)
    monkeypatch.setattr(stage, "ITEMS", tmp_path / "target")
    monkeypatch.setattr(stage, "SECTIONS", [("Pages", ["docs/a.md"])])
    monkeypatch.setattr(stage, "PARTS", {})
    found = stage.Stage()
    page = found.text("README.md")
    assert found.problems == [
        "docs/lost.md is not in docs/site/layout.py",
        "README.md:2: docs/b.md: no such file",
        "README.md:2: docs/a.md#three: no heading of this name",
        "README.md:6: docs/h.svg: no such file",
    ]
    assert page.splitlines()[1].startswith("[a](/a.md#two-words)")
    assert page.splitlines()[1].endswith("`[d](e.md)` `x::Y`")
    assert page.splitlines()[3] == "[f](g.md)"
