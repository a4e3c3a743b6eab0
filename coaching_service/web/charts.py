"""Charts as SVG without scripts and inline styles: the classes of the stylesheet color them, and axes show units.

Charts are 360 units wide, so that labels stay legible on a phone. The values are repeated in a table below each chart
(see macros.html) for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from markupsafe import Markup

WIDTH, HEIGHT = 360, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 22, 24
_DIGIT_WIDTH = 6.8  # the maximum width of a digit
_MAX_POINTS = 60
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_CELL, _WEEKS = 13, 13
_THOUSANDS = ("", "k", "M", "G", "T")


@dataclass(frozen=True)
class Scale:
    """The vertical axis from `low` to `high`, with a tick every `step`."""

    low: float
    high: float
    step: float

    def y(self, value: float) -> float:
        """Return the distance of a value from the top."""
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def ticks(self) -> list[float]:
        """Return the values of the ticks."""
        count = round((self.high - self.low) / self.step)
        return [self.low + at * self.step for at in range(count + 1)]

    def tick_labels(self) -> list[str]:
        """Return the labels of the ticks, abbreviated (k, M ...) with as many decimals as make them distinct."""
        power = min(len(_THOUSANDS) - 1, int(math.log10(max(abs(self.low), abs(self.high), 1)) / 3))
        unit = 1000**power if power > 1 or max(abs(self.low), abs(self.high)) >= 10_000 else 1
        places = max(0, 1 - math.floor(math.log10(self.step / unit)))
        suffix = _THOUSANDS[power] if unit > 1 else ""
        texts = [_plain(tick / unit, places) for tick in self.ticks()]
        return [text if text == "0" else text + suffix for text in texts]

    @property
    def left(self) -> float:
        """The left edge of the plot, right of the longest label."""
        return max(_LEFT, 10 + _DIGIT_WIDTH * max(map(len, self.tick_labels())))


def scale_of(values: Sequence[float], *, from_zero: bool) -> Scale:
    """Return an axis with about four round ticks that contains every value."""
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
    """Return values by date as a line chart with a time axis; up to 60 values also have points."""
    scale = scale_of([value for _, value in points], from_zero=False)
    days = [date.fromisoformat(day) for day, _ in points]
    first, span = days[0], (days[-1] - days[0]).days
    room = WIDTH - scale.left - _RIGHT
    xs = [round(scale.left + room * ((day - first).days / span if span else 0.5), 1) for day in days]
    ys = [scale.y(value) for _, value in points]
    path = "M" + " L".join(f"{x} {y}" for x, y in zip(xs, ys, strict=True))
    dots = [
        f'<circle class="dot" cx="{x}" cy="{y}" r="3">'
        f"<title>{_day(day)}: {_plain(value)} {_safe(unit)}</title></circle>"
        for x, y, day, (_, value) in zip(xs, ys, days, points, strict=True)
    ]
    shares = [0, 0.5, 1] if span > 1 else [0.0, 1.0][: span + 1]
    ends = [first + timedelta(days=round(span * share)) for share in shares]
    of_years = days[0].year != days[-1].year
    below = [
        _below(scale.left + room * (share if span else 0.5), _day(day, year=of_years), at, len(ends))
        for at, (share, day) in enumerate(zip(shares, ends, strict=True))
    ]
    marked = dots if len(dots) <= _MAX_POINTS else []
    return _svg([*_axis(scale, unit), f'<path class="line" d="{path}"/>', *marked, *below], label)


def sparkline(points: Sequence[tuple[str, float]], label: str) -> Markup:
    """Return values by date as a small line without axes, whose last value has a point."""
    width, height, margin = 120, 36, 5
    days = [date.fromisoformat(day) for day, _ in points]
    first, span = days[0], (days[-1] - days[0]).days
    low, high = min(value for _, value in points), max(value for _, value in points)
    room, rise = width - 2 * margin, height - 2 * margin
    places = [
        (
            round(margin + room * ((day - first).days / span if span else 1), 1),
            round(height - margin - rise * ((value - low) / (high - low) if high > low else 0.5), 1),
        )
        for day, (_, value) in zip(days, points, strict=True)
    ]
    path = "M" + " L".join(f"{x} {y}" for x, y in places)
    dot = f'<circle class="dot" cx="{places[-1][0]}" cy="{places[-1][1]}" r="3"/>'
    drawing = f'<path class="line" d="{path}"/>{dot}'
    about = f'class="chart spark" role="img" aria-label="{_safe(label)}" viewBox="0 0 {width} {height}"'
    return Markup(f"<svg {about}>{drawing}</svg>")  # noqa: S704 - the label is escaped


def bars(values: Sequence[tuple[str, float]], unit: str, label: str) -> Markup:
    """Return values by name as vertical bars; at most five are labelled, evenly spaced and including the last."""
    scale = scale_of([value for _, value in values], from_zero=True)
    room = (WIDTH - scale.left - 3.5 * _DIGIT_WIDTH) / len(values)  # space for half of the last label
    drawn = []
    for at, (name, value) in enumerate(values):
        x, y, base = scale.left + room * at + room * 0.15, scale.y(value), scale.y(0)
        drawn.append(
            f'<rect class="bar" x="{x:.1f}" y="{y}" width="{room * 0.7:.1f}" height="{max(0, base - y):.1f}" rx="1.5">'
            f"<title>{_safe(name)}: {_plain(value)} {_safe(unit)}</title></rect>"
        )
    named = range(len(values) - 1, -1, -math.ceil(len(values) / 5))
    below = [_below(scale.left + room * (at + 0.5), values[at][0], 1, 3) for at in named]
    return _svg([*_axis(scale, unit), *drawn, *below], label)


def rows(values: Sequence[tuple[str, float]], unit: str, label: str) -> Markup:
    """Return values by name as horizontal bars, for long names."""
    maximum = max(value for _, value in values) or 1
    left, height, room = 104, 20, WIDTH - 104 - 52
    drawn = []
    for at, (name, value) in enumerate(values):
        y, long = at * height, max(1.5, room * value / maximum)
        shown = name if len(name) <= 17 else name[:16] + "…"
        amount = _plain(value) if abs(value) < 10_000 else f"{value:.3g}"
        drawn.append(
            f'<text class="mark end" x="{left - 6}" y="{y + 14}">{_safe(shown)}</text>'
            f'<rect class="bar" x="{left}" y="{y + 4}" width="{long:.1f}" height="12" rx="1.5">'
            f"<title>{_safe(name)}: {_plain(value)} {_safe(unit)}</title></rect>"
            f'<text class="mark" x="{left + long + 5:.1f}" y="{y + 14}">{amount}</text>'
        )
    bottom = len(values) * height
    drawn.append(f'<text class="mark end" x="{WIDTH - _RIGHT}" y="{bottom + 14}">{_safe(unit)}</text>')
    return _svg(drawn, label, height=bottom + 18)


def heat(days: Sequence[tuple[str, str, str]], label: str, today: str = "") -> Markup:
    """Return days as one calendar per quarter with a column per week, from the first quarter with something on.

    `days`: (date, CSS class, description) of consecutive days. `today` is highlighted.
    """
    first = date.fromisoformat(days[0][0])
    monday = first - timedelta(days=first.weekday())
    quarters: dict[int, list[tuple[date, str, str]]] = {}
    for day, kind, meaning in days:
        when = date.fromisoformat(day)
        description = ("today, " if day == today else "") + meaning
        quarters.setdefault((when - monday).days // 7 // _WEEKS, []).append(
            (when, f"{kind} today" if day == today else kind, description)
        )
    begun = next((at for at, each in quarters.items() if any(kind != "none" for _, kind, _ in each)), 0)
    return Markup("").join(
        _quarter(monday + timedelta(weeks=at * _WEEKS), each, label) for at, each in quarters.items() if at >= begun
    )


def _quarter(monday: date, days: list[tuple[date, str, str]], label: str) -> Markup:
    drawn = [
        f'<text class="mark" x="0" y="{22 + _CELL * row}">{name}</text>'
        for row, name in enumerate(_DAYS)
        if row % 2 == 0
    ]
    for when, kind, meaning in days:
        x, y = 30 + (when - monday).days // 7 * _CELL, 12 + when.weekday() * _CELL
        if when.day == 1:
            month = f"{when:%b %Y}" if when.month == 1 else f"{when:%b}"
            drawn.append(f'<text class="mark" x="{x}" y="8">{month}</text>')
        drawn.append(
            f'<rect class="day {kind}" x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" rx="2">'
            f"<title>{_day(when)}: {_safe(meaning)}</title></rect>"
        )
    weeks = (days[-1][0] - monday).days // 7 + 1
    about = f"{label}, {_day(days[0][0], year=True)} to {_day(days[-1][0], year=True)}"
    return _svg(drawn, about, height=14 + 7 * _CELL, width=36 + max(4, weeks) * _CELL, fixed=True)


def short(day: str) -> str:
    """Return a date as `2 Mar`."""
    return _day(date.fromisoformat(day))


def _axis(scale: Scale, unit: str) -> list[str]:
    drawn = [f'<text class="mark" x="2" y="11">{_safe(unit)}</text>']
    for value, text in zip(scale.ticks(), scale.tick_labels(), strict=True):
        y = scale.y(value)
        drawn.append(
            f'<line class="grid" x1="{scale.left}" x2="{WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
            f'<text class="mark end" x="{scale.left - 6}" y="{y + 3.5}">{text}</text>'
        )
    return drawn


def _below(x: float, text: str, at: int, count: int) -> str:
    side = "" if at == 0 and count > 1 else " end" if at == count - 1 and count > 1 else " middle"
    return f'<text class="mark{side}" x="{x:.1f}" y="{HEIGHT - 8}">{_safe(text)}</text>'


def _svg(inner: list[str], label: str, *, height: int = HEIGHT, width: int = WIDTH, fixed: bool = False) -> Markup:
    """Return an SVG that fills the available width, or with `fixed` one at 125 % of its units."""
    about = f'class="chart" role="img" aria-label="{_safe(label)}" viewBox="0 0 {width} {height}"'
    size = f' width="{width * 1.25:.0f}" height="{height * 1.25:.0f}"' if fixed else ""
    return Markup(f"<svg {about}{size}>{''.join(inner)}</svg>")  # noqa: S704 - all text is escaped by _safe


def _safe(text: str) -> str:
    return str(Markup.escape(text))


def _plain(value: float, places: int = 3) -> str:
    """Return a number with at most `places` decimals and thousands separators."""
    text = f"{round(value, places) + 0:,.{places}f}"  # + 0 avoids -0
    return text.rstrip("0").rstrip(".") if "." in text else text


def _day(when: date, *, year: bool = False) -> str:
    return f"{when.day} {when:%b %Y}" if year else f"{when.day} {when:%b}"
