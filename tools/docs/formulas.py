"""Formulas: LaTeX between dollars in Markdown as MathML, which browsers render."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

_FORMULA = re.compile(
    r'<span class="arithmatex">\\\((.+?)\\\)</span>|<div class="arithmatex">\s*\\\[(.+?)\\\]\s*</div>', re.DOTALL
)


def written(content: str) -> str:
    """A page's HTML with its formulas as MathML.

    Example:
        >>> written(r'<span class="arithmatex">\\(x^2\\)</span>')[:52]
        '<math xmlns="http://www.w3.org/1998/Math/MathML" dis'
    """

    def formula(found: re.Match[str]) -> str:
        inline, block = found[1], found[2]
        made = convert(html.unescape(inline or block), display="inline" if inline else "block")
        return made if inline else f'<div class="r-formula">{made}</div>'

    return _FORMULA.sub(formula, content)
