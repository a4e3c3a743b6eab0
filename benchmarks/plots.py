"""Line plots as SVG, with logarithmic axes, without a library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 760, 420, 60, 50, 40, 210
_COLORS = ("#1b6ca8", "#c1440e", "#3a7d44", "#7b4ea3", "#b8860b", "#00838f", "#ad1457", "#5d4037", "#455a64", "#827717")


def plot(title: str, across: str, up: str, lines: Mapping[str, Points]) -> str:
    """A plot of `lines` by their names; `across` and `up` name the axes. All values are above 0."""
    points = [point for line in lines.values() for point in line]
    horizontal, vertical = ([point[axis] for point in points] for axis in (0, 1))
    x = _Scale(min(horizontal), max(horizontal), _LEFT, _WIDTH - _RIGHT)
    y = _Scale(min(vertical), max(vertical), _HEIGHT - _BOTTOM, _TOP)
    drawn = "\n".join([*_axes(x, y, across, up), *_lines(x, y, lines)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img" aria-label="{escape(title)}">\n<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>\n{drawn}\n</svg>\n'
    )


class _Scale:
    """Where values are between two coordinates; whole decades around the least and the greatest value."""

    def __init__(self, least: float, greatest: float, start: float, end: float) -> None:
        self.first = math.floor(math.log10(least))
        self.last = max(math.ceil(math.log10(greatest)), self.first + 1)
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return round(self._start + share * (self._end - self._start), 1)

    @property
    def decades(self) -> list[float]:
        return [10.0**power for power in range(self.first, self.last + 1)]


def _axes(x: _Scale, y: _Scale, across: str, up: str) -> Iterator[str]:
    for value in x.decades:
        at = x.place(value)
        yield f'<line x1="{at}" y1="{_TOP}" x2="{at}" y2="{_HEIGHT - _BOTTOM}" stroke="#ddd"/>'
        yield f'<text x="{at}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{value:,g}</text>'
    for value in y.decades:
        at = y.place(value)
        yield f'<line x1="{_LEFT}" y1="{at}" x2="{_WIDTH - _RIGHT}" y2="{at}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{at + 4}" text-anchor="end">{value:,g}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f'<text x="{middle}" y="{_HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>'
    yield f'<text x="{_LEFT}" y="{_TOP - 6}" text-anchor="end">{escape(up)}</text>'


def _lines(x: _Scale, y: _Scale, lines: Mapping[str, Points]) -> Iterator[str]:
    for number, (name, points) in enumerate(lines.items()):
        color = _COLORS[number % len(_COLORS)]
        path = " ".join(f"{x.place(across)},{y.place(up)}" for across, up in points)
        yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        if len(points) < 10:
            yield from (
                f'<circle cx="{x.place(across)}" cy="{y.place(up)}" r="3" fill="{color}"/>' for across, up in points
            )
        at = _TOP + 10 + 18 * number
        yield f'<rect x="{_WIDTH - _RIGHT + 14}" y="{at - 9}" width="10" height="10" fill="{color}"/>'
        yield f'<text x="{_WIDTH - _RIGHT + 30}" y="{at}">{escape(name)}</text>'
