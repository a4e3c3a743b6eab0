"""Charts as SVG: no script, no style of their own (the stylesheet's classes paint them), axes with units.

A chart is drawn in a space 360 wide, so that its letters can be read on a telephone. The numbers it shows stand in a
table beneath it (see macros.html), which is what a screen reader reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TypeVar

from markupsafe import Markup

T = TypeVar("T")
WIDTH, HEIGHT = 360, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 22, 24
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CELL = 13


@dataclass(frozen=True)
class Scale:
    """The upright axis: from `low` to `high`, marked every `step`."""

    low: float
    high: float
    step: float

    def y(self, value: float) -> float:
        """Where a value is, from the top."""
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def marks(self) -> list[float]:
        """The values marked."""
        count = round((self.high - self.low) / self.step)
        return [self.low + at * self.step for at in range(count + 1)]


def scale_of(values: Sequence[float], *, from_zero: bool) -> Scale:
    """An axis with about four round marks that holds every value."""
    low, high = min(values), max(values)
    if from_zero:
        low, high = min(low, 0), max(high, 0)
    if low == high:
        low, high = (low, low + 1) if from_zero else (low - 1, high + 1)
    rough = (high - low) / 4
    magnitude = 10 ** math.floor(math.log10(rough))
    step = next(magnitude * factor for factor in (1, 2, 2.5, 5, 10) if magnitude * factor >= rough * 0.999)
    return Scale(math.floor(low / step) * step, math.ceil(high / step) * step, step)


def lines(points: Sequence[tuple[str, float]], unit: str, label: str) -> Markup:
    """Values by date as a line; the distance between two points is that of their dates."""
    scale = scale_of([value for _, value in points], from_zero=False)
    days = [date.fromisoformat(day) for day, _ in points]
    span = max(1, (days[-1] - days[0]).days)
    room = WIDTH - _LEFT - _RIGHT
    xs = [round(_LEFT + room * ((day - days[0]).days / span if len(days) > 1 else 0.5), 1) for day in days]
    ys = [scale.y(value) for _, value in points]
    path = "M" + " L".join(f"{x} {y}" for x, y in zip(xs, ys, strict=True))
    dots = [
        f'<circle class="dot" cx="{x}" cy="{y}" r="3"><title>{_day(day)}: {_text(value)} {_safe(unit)}</title></circle>'
        for x, y, day, (_, value) in zip(xs, ys, days, points, strict=True)
    ]
    ends = _spread(list(zip(xs, days, strict=True)), 3)
    below = [_below(x, _day(day), at, len(ends)) for at, (x, day) in enumerate(ends)]
    inner = [*_axis(scale, unit), f'<path class="line" d="{path}"/>', *dots, *below]
    return _svg(inner, label)


def bars(values: Sequence[tuple[str, float]], unit: str, label: str) -> Markup:
    """Values by name as upright bars, in their order."""
    scale = scale_of([value for _, value in values], from_zero=True)
    room = (WIDTH - _LEFT - _RIGHT) / len(values)
    drawn = []
    for at, (name, value) in enumerate(values):
        x, y, base = _LEFT + room * at + room * 0.15, scale.y(value), scale.y(0)
        drawn.append(
            f'<rect class="bar" x="{x:.1f}" y="{y}" width="{room * 0.7:.1f}" height="{max(0, base - y):.1f}" rx="1.5">'
            f"<title>{_safe(name)}: {_text(value)} {_safe(unit)}</title></rect>"
        )
    middles = [(_LEFT + room * (at + 0.5), name) for at, (name, _) in enumerate(values)]
    below = [_below(x, name, 1, 3) for x, name in _spread(middles, 5)]
    return _svg([*_axis(scale, unit), *drawn, *below], label)


def rows(values: Sequence[tuple[str, float]], unit: str, label: str) -> Markup:
    """Values by name as lying bars, one beneath another: for names that need room."""
    most = max(value for _, value in values) or 1
    left, height, room = 104, 20, WIDTH - 104 - 52
    drawn = []
    for at, (name, value) in enumerate(values):
        y, long = at * height, max(1.5, room * value / most)
        shown = name if len(name) <= 17 else name[:16] + "…"
        drawn.append(
            f'<text class="mark end" x="{left - 6}" y="{y + 14}">{_safe(shown)}</text>'
            f'<rect class="bar" x="{left}" y="{y + 4}" width="{long:.1f}" height="12" rx="1.5">'
            f"<title>{_safe(name)}: {_text(value)} {_safe(unit)}</title></rect>"
            f'<text class="mark" x="{left + long + 5:.1f}" y="{y + 14}">{_text(value)}</text>'
        )
    bottom = len(values) * height
    drawn.append(f'<text class="mark end" x="{WIDTH - _RIGHT}" y="{bottom + 14}">{_safe(unit)}</text>')
    return _svg(drawn, label, height=bottom + 18)


def heat(days: Sequence[tuple[str, str, str]], label: str) -> Markup:
    """Days as a calendar, a week a column: (date, class, what it means) for each, in order, none left out."""
    first = date.fromisoformat(days[0][0])
    monday = first - timedelta(days=first.weekday())
    drawn = [
        f'<text class="mark" x="0" y="{22 + _CELL * row}">{name}</text>'
        for row, name in enumerate(_DAYS)
        if row % 2 == 0
    ]
    column, months = 0, set[tuple[int, int]]()
    for day, kind, meaning in days:
        when = date.fromisoformat(day)
        column = (when - monday).days // 7
        x, y = 30 + column * _CELL, 12 + when.weekday() * _CELL
        if when.day <= 7 and (when.year, when.month) not in months:
            months.add((when.year, when.month))
            drawn.append(f'<text class="mark" x="{x}" y="8">{when:%b}</text>')
        drawn.append(
            f'<rect class="day {kind}" x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" rx="2">'
            f"<title>{_day(when)}: {_safe(meaning)}</title></rect>"
        )
    return _svg(drawn, label, height=14 + 7 * _CELL, width=max(WIDTH, 36 + (column + 1) * _CELL))


def short(day: str) -> str:
    """A date as `2 Mar`."""
    return _day(date.fromisoformat(day))


def _axis(scale: Scale, unit: str) -> list[str]:
    drawn = [f'<text class="mark" x="2" y="11">{_safe(unit)}</text>']
    for value in scale.marks():
        y = scale.y(value)
        drawn.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
            f'<text class="mark end" x="{_LEFT - 6}" y="{y + 3.5}">{_text(value)}</text>'
        )
    return drawn


def _below(x: float, text: str, at: int, count: int) -> str:
    side = "" if at == 0 and count > 1 else " end" if at == count - 1 and count > 1 else " middle"
    return f'<text class="mark{side}" x="{x:.1f}" y="{HEIGHT - 8}">{_safe(text)}</text>'


def _spread(each: list[T], most: int) -> list[T]:
    """At most so many of them, the first and the last among them, evenly spread."""
    if len(each) <= most:
        return each
    return [each[round(at * (len(each) - 1) / (most - 1))] for at in range(most)]


def _svg(inner: list[str], label: str, *, height: int = HEIGHT, width: int = WIDTH) -> Markup:
    about = f'class="chart" role="img" aria-label="{_safe(label)}" viewBox="0 0 {width} {height}"'
    return Markup(f"<svg {about}>{''.join(inner)}</svg>")  # noqa: S704 - every text in it went through _safe


def _safe(text: str) -> str:
    return str(Markup.escape(text))


def _text(value: float) -> str:
    return (
        f"{value:,.3f}".rstrip("0").rstrip(".")
        if abs(value) < 10_000
        else f"{value / 1000:,.1f}".rstrip("0").rstrip(".") + "k"
    )


def _day(when: date) -> str:
    return f"{when.day} {when:%b}"
