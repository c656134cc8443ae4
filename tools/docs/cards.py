"""Cards: the preview pictures for links to a page, with the page's title and description."""

from __future__ import annotations

import hashlib
import textwrap
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

SIZE = (1200, 630)
FOLDER = "assets/cards"
_BACK, _TEXT, _SOFT, _LINE = 0, 1, 2, 3
_COLOURS = [0x1C, 0x3F, 0x5E, 0xFF, 0xFF, 0xFF, 0xB9, 0xCC, 0xDD, 0xF0, 0xA0, 0x60]


def path_of(source: str) -> str:
    """The path of a page's card, given the page's source."""
    return f"{FOLDER}/{source.removesuffix('.md').replace('/', '-')}.png"


def draw_all(pages: dict[str, tuple[str, str]], site: Path, name: str) -> None:
    """Draws the cards of pages, given title and description by source; existing ones are kept in a cache."""
    cache = Path(".cache") / "cards"
    cache.mkdir(parents=True, exist_ok=True)
    (site / FOLDER).mkdir(parents=True, exist_ok=True)
    for source, (title, description) in pages.items():
        key = hashlib.sha256(repr((title, description, name, 1)).encode()).hexdigest()[:24]
        kept = cache / f"{key}.png"
        if not kept.exists():
            draw(title, description, name).save(kept, optimize=False, compress_level=6)
        (site / path_of(source)).write_bytes(kept.read_bytes())


def draw(title: str, description: str, name: str) -> Image.Image:
    """A card; its font is the one that Pillow includes."""
    image = Image.new("P", SIZE, _BACK)
    image.putpalette(_COLOURS)
    pen = ImageDraw.Draw(image)
    pen.fontmode = "1"
    pen.text((80, 70), name, _LINE, ImageFont.load_default(38))
    pen.line((80, 130, 1120, 130), _LINE, 4)
    lines = textwrap.wrap(title.replace("`", ""), 28)[:3]
    for i, line in enumerate(lines):
        pen.text((80, 170 + 84 * i), line, _TEXT, ImageFont.load_default(72))
    for i, line in enumerate(textwrap.wrap(description, 62)[:4]):
        pen.text((80, 190 + 84 * len(lines) + 44 * i), line, _SOFT, ImageFont.load_default(34))
    return image
