"""A picture of lines over days, as PNG, drawn with nothing but numpy and zlib.

Invariants: pure until it is written; the same figures give the same bytes; every line and every axis says what it is.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Colour: TypeAlias = tuple[int, int, int]
Pixels: TypeAlias = NDArray[np.float32]

_WIDTH: Final = 960
_PANEL: Final = 300
#: Left, top, right, bottom of what is drawn in a panel.
_MARGINS: Final = (64, 40, 24, 40)
#: Drawn so many times as large and averaged, so that lines are smooth.
_FINE: Final = 3
_INK: Final = (60, 60, 60)
_GRID: Final = (225, 225, 225)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: a value for each day from the first on. Thin lines are the many, thick ones what sums them up."""

    values: Sequence[float]
    colour: Colour
    thick: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines over the same days, with what they count as the title."""

    title: str
    lines: Sequence[Line]


def png(panels: Sequence[Panel]) -> bytes:
    """The panels one below the other as an image file."""
    drawn = [_panel(panel) for panel in panels]
    return _encoded(np.concatenate(drawn))


def write(path: Path, panels: Sequence[Panel]) -> None:
    """Write the picture, in place of what was there."""
    path.write_bytes(png(panels))


def step(most: float) -> int:
    """The distance of grid lines on an axis up to `most`: 1, 2 or 5 times a power of ten, some five lines in all."""
    wanted = max(most, 1) / 5
    power = 10 ** int(np.floor(np.log10(wanted))) if wanted >= 1 else 1
    return int(next((factor * power for factor in (1, 2, 5, 10) if factor * power >= wanted), 10 * power))


def _panel(panel: Panel) -> Pixels:
    left, top, right, bottom = _MARGINS
    canvas = np.full((_PANEL * _FINE, _WIDTH * _FINE, 3), 255, np.float32)
    days = max((len(line.values) for line in panel.lines), default=1)
    most = max((value for line in panel.lines for value in line.values), default=1)
    every = step(most)
    ceiling = max(every, -(-int(np.ceil(most)) // every) * every)

    def at(day: float, value: float) -> tuple[float, float]:
        x = left + (_WIDTH - left - right) * day / max(days - 1, 1)
        return x, _PANEL - bottom - (_PANEL - top - bottom) * value / ceiling

    for value in range(0, ceiling + 1, every):
        _stroke(canvas, at(0, value), at(days - 1, value), _GRID if value else _INK, 1)
    for line in sorted(panel.lines, key=lambda line: line.thick):
        points = [at(day, value) for day, value in enumerate(line.values)]
        for one, other in pairwise(points):
            _stroke(canvas, one, other, line.colour, 2.5 if line.thick else 1)
    image: Pixels = canvas.reshape(_PANEL, _FINE, _WIDTH, _FINE, 3).mean(axis=(1, 3), dtype=np.float32)
    for value in range(0, ceiling + 1, every):
        _write(image, str(value), left - 8 - _wide(str(value)), int(at(0, value)[1]) - 7, _INK)
    for day in range(0, days, step(days)):
        _write(image, f"day {day or 1}", int(at(max(day - 1, 0), 0)[0]), _PANEL - bottom + 10, _INK)
    _write(image, panel.title, left, 12, _INK)
    x = _WIDTH - right
    for line in reversed([line for line in panel.lines if line.name]):
        x -= _wide(line.name) + 24
        _write(image, line.name, x, 12, line.colour)
    return image


def _stroke(canvas: Pixels, one: tuple[float, float], other: tuple[float, float], colour: Colour, wide: float) -> None:
    """A straight stroke between two points, given in pixels of the finished image."""
    (x0, y0), (x1, y1) = ((x * _FINE, y * _FINE) for x, y in (one, other))
    steps = int(max(abs(x1 - x0), abs(y1 - y0))) + 1
    half = int(wide * _FINE / 2)
    for t in np.linspace(0, 1, steps + 1):
        x, y = int(x0 + (x1 - x0) * t), int(y0 + (y1 - y0) * t)
        canvas[max(y - half, 0) : y + half + 1, max(x - half, 0) : x + half + 1] = colour


def _write(image: Pixels, text: str, x: int, y: int, colour: Colour) -> None:
    """Words in letters of 10 by 14 pixels; a character there is none for is left blank."""
    for char in text.lower():
        for row, bits in enumerate(_LETTERS.get(char, ())):
            for column in range(5):
                if bits >> (4 - column) & 1:
                    image[y + 2 * row : y + 2 * row + 2, x + 2 * column : x + 2 * column + 2] = colour
        x += 12


def _wide(text: str) -> int:
    return 12 * len(text)


def _encoded(image: Pixels) -> bytes:
    """PNG with 8 bits a channel (RFC 2083)."""
    height, width, _ = image.shape
    pixels = np.clip(np.round(image), 0, 255).astype(np.uint8)
    # Each row begins with its filter; 0 is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), chunk(b"IEND", b""))
    )


#: Seven rows of five pixels for each character, two hexadecimal digits a row, the highest bit on the left.
_FONT: Final = """
0=0e11131519110e 1=040c040404040e 2=0e11010204081f 3=1f02040201110e 4=02060a121f0202 5=1f101e0101110e 6=0608101e11110e
7=1f010204080808 8=0e11110e11110e 9=0e11110f01020c a=00000e010f110f b=1010161911111e c=00000e1010110e d=01010d1311110f
e=00000e111f100e f=0609081c080808 g=000f11110f010e h=10101619111111 i=04000c0404040e j=0200060202120c k=10101214181412
l=0c04040404040e m=00001a15151111 n=00001619111111 o=00000e1111110e p=00001e111e1010 q=00000d130f0101 r=00001619101010
s=00000e100e011e t=08081c08080906 u=0000111111130d v=000011110a0a04 w=0000111115150a x=0000110a040a11 y=000011110f010e
z=00001f0204081f (=02040808080402 )=08040202020408 ,=000000000c0408 .=000000000c0c00 -=0000001f000000 :=000c0c000c0c00
"""
_LETTERS: Final[Mapping[str, bytes]] = {
    char: bytes.fromhex(rows) for char, rows in (entry.split("=") for entry in _FONT.split())
}
