"""Formulas of the site as MathML, which browsers set without scripts or fonts.

KaTeX is the copy in ``bench/katex``, which writes the formulas of the Rust documentation too.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from py_mini_racer import MiniRacer

KATEX = Path(__file__).resolve().parent.parent.parent / "bench/katex/katex.min.js"
# `mathvariant` is known to browsers as `normal` only
SCRIPT = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵"))


@cache
def katex() -> MiniRacer:
    """An interpreter of JavaScript that has read KaTeX."""
    context = MiniRacer()
    context.eval(KATEX.read_text(encoding="utf-8"))
    return context


@cache
def mathml(latex: str, display: bool) -> str:
    """A formula as MathML; an error names what KaTeX does not know."""
    options = {"displayMode": display, "output": "mathml", "throwOnError": True, "strict": "error"}
    out = katex().eval(f"katex.renderToString({json.dumps(latex)}, {json.dumps(options)})")
    for letter, script in SCRIPT.items():
        out = out.replace(f' mathvariant="script">{letter}<', f">{script}<")
    # the source of the formula would be found by the search
    out = re.sub("<annotation.*?</annotation>", "", out, flags=re.DOTALL)
    # the small space that TeX leaves behind the name of a function
    return re.sub("<mo>\u2061</mo>(?!<mo[^>]*>\\()", '<mo>\u2061</mo><mspace width="0.17em"></mspace>', out)


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node.astext(), True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
