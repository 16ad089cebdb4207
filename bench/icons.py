"""The icons of the page as an app: `python -m bench.icons` draws them anew from the page's picture, in a browser.

An icon that devices cut to a shape of their own is filled to its edges, with the picture in the middle.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from tests.kit.browser import chromium

STATIC: Final = Path(__file__).parents[1] / "gateway" / "page" / "static"
#: Name, pixels, and the share of the icon that the picture takes.
ICONS: Final = (("icon-192", 192, 1.0), ("icon-512", 512, 1.0), ("icon-whole-512", 512, 0.8))


async def main() -> None:
    picture = (STATIC / "remora.svg").read_text("utf-8")
    async with chromium() as browser:
        for name, pixels, share in ICONS:
            page = await browser.new_page(viewport={"width": pixels, "height": pixels})
            ground = "#0e6b66" if share < 1 else "transparent"
            await page.set_content(
                f"<style>body {{margin: 0; display: grid; place-items: center; height: 100vh; background: {ground}}}"
                f" svg {{width: {share * pixels}px}}</style>{picture}"
            )
            await page.screenshot(path=STATIC / f"{name}.png", omit_background=True)


if __name__ == "__main__":
    asyncio.run(main())
