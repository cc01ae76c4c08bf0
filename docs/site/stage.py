"""Lays out the pages of the repository as the source of the site, and checks their links.

    python docs/site/stage.py --check     every page is in the layout, every link leads somewhere
    python docs/site/stage.py FOLDER      writes the source of the site

The pages stay where they are. A copy of each goes to its place in ``layout.py``; links between pages follow, and
code spans that begin with ``crate::`` link to the documentation of the Rust crate where ``target/doc`` has it.
Lines keep their numbers, so that a message about the copy fits the page.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from layout import PARTS, PLACES, SECTIONS, TITLES

ROOT = Path(__file__).resolve().parent.parent.parent
# folders whose Markdown pages must all be in the layout
FOLDERS = ("docs", "crates/sparsegp-python/docs")
# the page of the Rust crate, and where its items are documented once that has been built
CRATE = "crates/sparsegp/README.md"
ITEMS = ROOT / "target/doc/sparsegp"
ALL_ITEMS = '\n<p><a href="rust/sparsegp/index.html">Documentation of all items</a></p>\n'
FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
LINK = re.compile(r"(?P<image>!?)\[(?P<words>(?:[^\[\]]|\[[^\]]*\]\([^)]*\))*)\]\((?P<target>[^)\s]+)\)")
SPAN = re.compile(r"`[^`]*`")


def found() -> list[str]:
    """The Markdown pages of the repository that belong on the site."""
    pages = [page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")]
    return sorted(page.relative_to(ROOT).as_posix() for page in pages)


def listed() -> tuple[list[tuple[str, list[str]]], dict[str, list[str]]]:
    """Sections and parts of the layout with their patterns replaced by pages."""
    everything = [*SECTIONS, *PARTS.items()]
    named = {entry for _, entries in everything for entry in entries if "*" not in entry}
    taken = {*named, "README.md"}
    rest = [
        *found(),
        *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/site/api").glob("*.rst")),
    ]

    def pages(entries: list[str]) -> list[str]:
        out = []
        for entry in entries:
            folder = posixpath.dirname(entry)
            matching = (
                [entry]
                if "*" not in entry
                else [
                    page
                    for page in rest
                    if page not in taken and posixpath.dirname(page) == folder and fnmatch.fnmatch(page, entry)
                ]
            )
            taken.update(matching)
            out += matching
        return out

    return [(caption, pages(entries)) for caption, entries in SECTIONS], {
        page: pages(entries) for page, entries in PARTS.items()
    }


def place(page: str) -> str:
    """The place of a page of the repository on the site."""
    if page in PLACES:
        return PLACES[page]
    folder = posixpath.dirname(page) + "/" if "/" in page else ""
    prefix = max((key for key in PLACES if folder.startswith(key) and not key.endswith("md")), key=len)
    out = PLACES[prefix] + page[len(prefix) :].lower()
    return out.removesuffix("readme.md") + "index.md" if out.endswith("readme.md") else out


def anchors(page: str) -> set[str]:
    """The anchors of a page: its headings as GitHub names them, and those that are written out."""
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, int] = {}
    out = set(re.findall(r'<a id="([^"]+)"', text))
    for prose, line in lines(text):
        if prose and (heading := re.match(r"#{1,6}\s+(.*)", line)):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            count = names.get(slug, 0)
            names[slug] = count + 1
            out.add(f"{slug}-{count}" if count else slug)
    return out


def lines(text: str) -> Iterator[tuple[bool, str]]:
    """The lines of a page, and whether each is prose and not code."""
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence:
            yield False, line
            if mark and line.strip() == fence:
                fence = ""
        else:
            yield mark is None, line
            fence = mark[1] if mark else ""


def repository() -> str:
    """The address of the repository, if the workspace states one."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    stated = re.search(r'^repository = "([^"]+)"', manifest, re.MULTILINE)
    return stated[1] if stated else ""


class Stage:
    """The pages of the site, and what is wrong with their links."""

    def __init__(self) -> None:
        self.sections, self.parts = listed()
        chosen = [page for _, pages in [*self.sections, *self.parts.items()] for page in pages]
        self.pages = {page: place(page) for page in ["README.md", *chosen]}
        self.problems = [f"{page} is not in docs/site/layout.py" for page in found() if page not in self.pages]
        self.problems += [f"{page}: not found" for page in self.pages if not (ROOT / page).is_file()]
        # pictures, and files that are not pages (notebooks and others), to download
        self.files: set[str] = set()
        self.known: dict[str, set[str]] = {}

    def address(self, page: str, number: int, target: str, image: bool) -> str | None:
        """A link as the site has it; None where only its words are kept."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        at = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        for index in (at, f"{at}/README.md"):
            if index in self.pages:
                if anchor and anchor not in self.known.setdefault(index, anchors(index)):
                    self.problems.append(f"{page}:{number}: {target}: no heading of this name")
                whole = f"/{self.pages[index]}" if path else ""
                return f"{whole}#{anchor}" if anchor else whole
        if not (ROOT / at).exists():
            self.problems.append(f"{page}:{number}: {target}: no such file")
        if repository() and not image and not at.endswith(".ipynb"):
            return f"{repository()}/blob/main/{at}"
        if (ROOT / at).is_dir():
            return None
        self.files.add(at)
        return f"/files/{at}"

    def prose(self, page: str, number: int, text: str) -> str:
        """A line that is not code, with the links of the site."""
        spans = SPAN.findall(text)

        def link(match: re.Match[str]) -> str:
            words = LINK.sub(link, match["words"])
            if match["target"].startswith("crate::"):
                return rust(match["target"], words, self.pages[page])
            target = self.address(page, number, match["target"], bool(match["image"]))
            return words if target is None else f"{match['image']}[{words}]({target})"

        def span(match: re.Match[str]) -> str:
            code = spans.pop(0)
            path = code.strip("`")
            if not path.startswith("crate::"):
                return code
            return rust(path, f"`{path.removeprefix('crate::')}`", self.pages[page])

        # code spans step aside, since a link may hold one and they may hold what looks like a link
        text = LINK.sub(link, SPAN.sub("\0", text))
        # a number and its sign stay on one line
        return re.sub("\0", span, re.sub(r"(\d) %", "\\1\u00a0%", text))

    def text(self, page: str) -> str:
        """A page with the links of the site."""
        out = []
        for number, (prose, line) in enumerate(lines((ROOT / page).read_text(encoding="utf-8")), 1):
            if prose:
                # a place that links lead to
                line = re.sub(r'^<a id="([^"]+)"></a>$', r"(\1)=", self.prose(page, number, line))
            out.append(line)
        return "\n".join(out)

    def trees(self, page: str) -> str:
        """The sidebar below a page, which for the front page is all of it."""
        sections = self.sections if page == "README.md" else [("", self.parts.get(page, []))]
        before, after, indent = (
            ("```{toctree}", "```\n", "") if page.endswith(".md") else (".. toctree::", "", "   ")
        )
        out = ""
        for caption, pages in sections:
            options = [":hidden:", *([f":caption: {caption}"] if caption else []), ""]
            body = "".join(f"{indent}{line}\n" for line in [*options, *map(self.entry, pages)])
            out += f"\n{before}\n{body}{after}" if pages else ""
        return out

    def entry(self, page: str) -> str:
        """A line of a sidebar."""
        name = "/" + posixpath.splitext(self.pages[page])[0]
        return f"{TITLES[page]} <{name}>" if page in TITLES else name

    def write(self, out: Path) -> None:
        """Writes the source of the site; files that have not changed keep their time."""
        texts = {}
        for page, site in self.pages.items():
            text = self.text(page) if site.endswith(".md") else (ROOT / page).read_text(encoding="utf-8")
            texts[site] = text + (ALL_ITEMS if page == CRATE and ITEMS.is_dir() else "") + self.trees(page)
        wanted = {*texts, *(f"files/{file}" for file in self.files)}
        for old in list(out.rglob("*")):
            if old.is_file() and old.relative_to(out).as_posix() not in wanted:
                old.unlink()
        for site, text in texts.items():
            file = out / site
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")
        for file in self.files:
            (out / "files" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, out / "files" / file)


def rust(path: str, words: str, site: str) -> str:
    """A link to an item of the Rust crate, if its documentation is built; else the words."""
    *parents, last = path.removeprefix("crate::").rstrip("()").split("::")
    folder, target = ITEMS, None
    if (folder.joinpath(*parents, last) / "index.html").is_file():
        target = "/".join([*parents, last, "index.html"])
    for file in folder.joinpath(*parents).glob(f"*.{last}.html"):
        target = "/".join([*parents, file.name])
    if target is None and parents:
        *above, owner = parents
        for file in folder.joinpath(*above).glob(f"*.{owner}.html"):
            text = file.read_text(encoding="utf-8")
            kinds = ("method", "tymethod", "variant", "structfield", "associatedconstant")
            kind = next((kind for kind in kinds if f'id="{kind}.{last}"' in text), None)
            target = "/".join([*above, f"{file.name}#{kind}.{last}"]) if kind else None
    if target is None:
        return words
    code = re.sub(r"`([^`]*)`", r'<code class="literal">\1</code>', words)
    return f'<a class="rust" href="{"../" * site.count("/")}rust/sparsegp/{target}">{code}</a>'


def main() -> int:
    stage = Stage()
    if sys.argv[1:] == ["--check"]:
        for page in stage.pages:
            if page.endswith(".md") and (ROOT / page).is_file():
                stage.text(page)
    elif not stage.problems:
        stage.write(Path(sys.argv[1]))
    for problem in stage.problems:
        print(problem, file=sys.stderr)
    return 1 if stage.problems else 0


if __name__ == "__main__":
    sys.exit(main())
