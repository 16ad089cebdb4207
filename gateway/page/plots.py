"""Pictures of figures as SVG: columns over time, and one bar of parts.

Invariants: a picture has a title, a scale and values, and each of its figures stands in the table beside it, which
`templates/_plot.html` makes of the same `Plot`. Nothing in a picture is more than names and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from markupsafe import Markup

#: The picture in its units: its size, and the room for the scale and for the labels below.
_WIDTH: Final = 360
_HEIGHT: Final = 150
_LEFT: Final = 44
_BELOW: Final = 20
_ABOVE: Final = 10
_BAR: Final = 30
#: The labels below that have room.
_LABELS: Final = 4


def grouped(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The figures of one name, drawn in the `hue` of the page's style sheet; None where there is no figure."""

    name: str
    hue: int
    values: Sequence[float | None]


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Columns over `labels`, a column for each, on top of each other or, if not `stacked`, in front of each other.

    `head` names the labels in the table, `form` writes a figure.
    """

    title: str
    head: str
    labels: Sequence[str]
    series: Sequence[Series]
    stacked: bool = True
    form: Callable[[float], str] = grouped

    @cached_property
    def rows(self) -> list[tuple[str, list[str]]]:
        """The table: the newest label first, without those that have no figures."""
        return [
            (label, [self._told(one.values[n]) for one in self.series])
            for n, label in reversed(list(enumerate(self.labels)))
            if any(one.values[n] for one in self.series)
        ]

    def _told(self, value: float | None) -> str:
        return "–" if value is None else self.form(value)

    @cached_property
    def svg(self) -> Markup:
        tall, step = _HEIGHT - _BELOW - _ABOVE, (_WIDTH - _LEFT) / max(1, len(self.labels))
        tops = [[one.values[n] or 0 for one in self.series] for n in range(len(self.labels))]
        most = _rounded(max((sum(top) if self.stacked else max(top, default=0) for top in tops), default=0))
        scale = {self.form(most * share): share for share in (0.5, 0.0, 1.0)}  # half of one is no number of answers
        parts = [_line(_ABOVE + tall * (1 - share), label) for label, share in scale.items()]
        every = -(-len(self.labels) // _LABELS)
        for n, label in enumerate(self.labels):
            at, under = _LEFT + n * step, 0.0
            told = "; ".join(f"{one.name} {self._told(one.values[n])}" for one in self.series)
            parts.append(Markup("<g><title>{}: {}</title>").format(label, told))
            for one in self.series:
                value = one.values[n] or 0
                if value:
                    high = tall * value / most
                    parts.append(_rect(one.hue, at + step * 0.12, _ABOVE + tall - under - high, step * 0.76, high))
                    under += high if self.stacked else 0
            parts.append(Markup("</g>"))
            if n % every == 0:
                middle = f"{at + step / 2:.1f}"
                parts.append(Markup('<text x="{}" y="{}">{}</text>').format(middle, _HEIGHT - 5, label))
        return _picture(self.title, _HEIGHT, parts, "columns")


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One bar of named parts of a whole, with the share of each."""

    title: str
    series: Sequence[tuple[str, int, float]]

    @property
    def rows(self) -> list[tuple[str, int, str, str]]:
        whole = sum(value for _, _, value in self.series) or 1
        return [(name, hue, grouped(value), f"{100 * value / whole:.0f} %") for name, hue, value in self.series]

    @property
    def svg(self) -> Markup:
        whole, at, parts = sum(value for _, _, value in self.series) or 1, 0.0, []
        for name, hue, value in self.series:
            wide = _WIDTH * value / whole
            parts.append(Markup("<g><title>{}: {}</title>").format(name, grouped(value)))
            parts.append(_rect(hue, at, 0, max(wide - 1, 0.5), _BAR))
            parts.append(Markup("</g>"))
            at += wide
        return _picture(self.title, _BAR, parts, "bar")


def _picture(title: str, height: int, parts: Sequence[Markup], kind: str) -> Markup:
    """Returns a picture. A bar is as wide as its place, so it may be stretched; it has no words."""
    fit = "none" if kind == "bar" else "xMinYMid"
    head = Markup('<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="{}" role="img" aria-label="{}">').format(
        kind, _WIDTH, height, fit, title
    )
    return head + Markup("").join(parts) + Markup("</svg>")


def _rect(hue: int, x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<rect class="hue{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
        hue, x, y, width, height
    )


def _line(y: float, label: str) -> Markup:
    return Markup(
        '<line x1="{}" y1="{:.1f}" x2="{}" y2="{:.1f}"/><text class="scale" x="{}" y="{:.1f}">{}</text>'
    ).format(_LEFT, y, _WIDTH, y, _LEFT - 4, y + 3.5, label)


def _rounded(most: float) -> float:
    """Returns the next number that is easily read as the top of a scale: 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return 1
    power = 10.0 ** (len(f"{most:.0f}") - 1) if most >= 1 else 10.0 ** -len(f"{1 / most:.0f}")
    return next(step * power for step in (1, 2, 5, 10, 20) if step * power >= most)
