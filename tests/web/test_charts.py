"""Charts: whatever is drawn is well-formed, holds every value, and says nothing that a name could make it do."""

from __future__ import annotations

from datetime import date, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coaching_service.web import charts

ALLOWED = {"svg", "text", "line", "path", "circle", "rect", "title"}
names = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=40)
values = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 2))
amounts = st.floats(0, 1e9).map(lambda value: round(value, 2))


def drawn(chart: str) -> ElementTree.Element:
    """The chart as a browser reads it: only shapes and letters, nothing outside of the picture."""
    root = ElementTree.fromstring(chart)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for each in root.iter():
        assert each.tag in ALLOWED
        assert not [name for name in each.attrib if name.startswith("on") or name in ("style", "href")]
        for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            assert -1 <= float(each.attrib.get(name, 0)) <= most + 1, (each.tag, each.attrib)
    return root


@given(st.lists(values, min_size=1, max_size=60), names)
def test_a_line_has_a_point_for_each_value(heights: list[float], unit: str) -> None:
    points = [(str(date(2026, 3, 2) + timedelta(days=3 * at)), value) for at, value in enumerate(heights)]
    assert len(drawn(charts.lines(points, unit, unit)).findall("circle")) == len(points)


@given(st.lists(st.tuples(names, amounts), min_size=1, max_size=60), names)
def test_bars_are_as_many_as_values(bars: list[tuple[str, float]], unit: str) -> None:
    assert len(drawn(charts.bars(bars, unit, unit)).findall("rect")) == len(bars)
    assert len(drawn(charts.rows(bars, unit, unit)).findall("rect")) == len(bars)


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(1, 400))
def test_a_heat_map_has_each_day_once(first: date, count: int) -> None:
    days = [(str(first + timedelta(days=ahead)), "done", "all done") for ahead in range(count)]
    cells = [(cell.attrib["x"], cell.attrib["y"]) for cell in drawn(charts.heat(days, "Days")).findall("rect")]
    assert len(cells) == len(set(cells)) == count


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [(0, 10_300, [0, 5000, 10_000, 15_000]), (79, 82, [79, 80, 81, 82]), (5, 5, [4, 4.5, 5, 5.5, 6])],
)
def test_an_axis_is_marked_in_round_steps(low: float, high: float, marks: list[float]) -> None:
    assert charts.scale_of([low, high], from_zero=False).marks() == marks


def test_a_name_is_only_a_name() -> None:
    evil = '"><script>alert(1)</script>'
    for chart in (charts.rows([(evil, 1)], evil, evil), charts.bars([(evil, 1)], evil, evil)):
        assert "<script" not in chart
        assert drawn(chart).attrib["aria-label"] == evil
