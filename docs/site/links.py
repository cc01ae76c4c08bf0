"""Checks the links of a built site: every file and every anchor within it must exist.

python docs/site/links.py target/site/html
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and tag != "base":
                self.links.append(value)


@cache
def page(path: Path) -> Page:
    out = Page()
    out.feed(path.read_text(encoding="utf-8"))
    return out


def problems(root: Path) -> tuple[int, list[str]]:
    """How many links there are, and those that lead nowhere."""
    count, out = 0, []
    for path in sorted(root.rglob("*.html")):
        relative = path.relative_to(root)
        # rustdoc has checked its own
        if relative.parts[0] in ("rust", "_static"):
            continue
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                out.append(f"{relative}: {link}")
            elif (
                parts.fragment
                and target.suffix == ".html"
                and unquote(parts.fragment) not in page(target).anchors
            ):
                out.append(f"{relative}: {link}: no such place on the page")
    return count, out


def main() -> int:
    count, found = problems(Path(sys.argv[1]))
    for problem in found:
        print(problem, file=sys.stderr)
    print(f"{count} links within the site, {len(found)} broken")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
