"""Charts: well-formed SVG with every value, with escaped names."""

from __future__ import annotations

import itertools
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
    """Parse a chart and check that it contains only shapes and text within its view box."""
    root = ElementTree.fromstring(chart)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for each in root.iter():
        assert each.tag in ALLOWED
        assert not [name for name in each.attrib if name.startswith("on") or name in ("style", "href")]
        for name, maximum in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            assert -1 <= float(each.attrib.get(name, 0)) <= maximum + 1, (each.tag, each.attrib)
    return root


def marked(chart: str) -> ElementTree.Element:
    """Parse a chart and check that no label of the vertical axis is cut off."""
    root = drawn(chart)
    for each in root.iter("text"):
        if each.attrib["class"] == "mark end" and float(each.attrib["y"]) < 175:
            assert float(each.attrib["x"]) >= 6.5 * len(each.text or ""), f"{each.text!r} sticks out on the left"
    return root


@given(st.lists(values, min_size=1, max_size=60), names)
def test_line_chart_has_a_point_per_value(heights: list[float], unit: str) -> None:
    points = [(str(date(2026, 3, 2) + timedelta(days=3 * at)), value) for at, value in enumerate(heights)]
    assert len(marked(charts.lines(points, unit, unit)).findall("circle")) == len(points)


@given(st.lists(st.tuples(names, amounts), min_size=1, max_size=60), names)
def test_bar_chart_has_a_bar_per_value(bars: list[tuple[str, float]], unit: str) -> None:
    assert len(marked(charts.bars(bars, unit, unit)).findall("rect")) == len(bars)
    assert len(drawn(charts.rows(bars, unit, unit)).findall("rect")) == len(bars)


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(1, 400))
def test_heat_map_has_each_day_once(first: date, count: int) -> None:
    days = [(str(first + timedelta(days=ahead)), "done", "all done") for ahead in range(count)]
    quarters = [drawn(f"<svg{each}") for each in charts.heat(days, "Days", str(first)).split("<svg")[1:]]
    cells = [(at, c.attrib["x"], c.attrib["y"]) for at, each in enumerate(quarters) for c in each.findall("rect")]
    assert len(cells) == len(set(cells)) == count
    results = [cell for each in quarters for cell in each.findall("rect") if "today" in cell.attrib["class"]]
    assert [cell.findtext("title") for cell in results] == [f"{charts.short(str(first))}: today, all done"]
    assert max(float(each.attrib["width"]) for each in quarters) <= 270, "a quarter fits on a phone at full size"


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [(0, 10_300, [0, 5000, 10_000, 15_000]), (79, 82, [79, 80, 81, 82]), (5, 5, [4, 4.5, 5, 5.5, 6])],
)
def test_axis_has_round_steps(low: float, high: float, marks: list[float]) -> None:
    assert charts.scale_of([low, high], from_zero=False).ticks() == marks


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (79, 82, ["79", "80", "81", "82"]),
        (0, 10_300, ["0", "5k", "10k", "15k"]),
        (-0.3, 0.1, ["-0.3", "-0.2", "-0.1", "0", "0.1"]),
        (-2e9, 2e9, ["-2G", "-1G", "0", "1G", "2G"]),
        (12_345_678, 12_345_680, ["12.345678M", "12.3456785M", "12.345679M", "12.3456795M", "12.34568M"]),
    ],
)
def test_axis_labels_are_short_and_distinct(low: float, high: float, texts: list[str]) -> None:
    assert charts.scale_of([low, high], from_zero=False).tick_labels() == texts


def test_long_line_chart_has_no_points_and_shows_years() -> None:
    points = [(str(date(2025, 12, 2) + timedelta(days=at)), at % 7 + 0.5) for at in range(300)]
    chart = drawn(charts.lines(points, "kg", "Weight"))
    assert chart.findall("circle") == []
    named = [each.text for each in chart.findall("text") if float(each.attrib["y"]) > 180]
    assert named == ["2 Dec 2025", "1 May 2026", "27 Sep 2026"]


@pytest.mark.parametrize("count", [1, 4, 12, 26, 52])
def test_bar_labels_are_evenly_spaced(count: int) -> None:
    weeks = [(charts.short(str(date(2026, 3, 2) + timedelta(weeks=at))), 5.0) for at in range(count)]
    chart = drawn(charts.bars(weeks, "sets", "Sets"))
    xs = sorted(float(each.attrib["x"]) for each in chart.findall("text") if float(each.attrib["y"]) > 180)
    apart = [round(after - before) for before, after in itertools.pairwise(xs)]
    assert max(apart, default=0) - min(apart, default=0) <= 1
    assert [each.text for each in chart.findall("text") if float(each.attrib["x"]) == xs[-1]] == [weeks[-1][0]]


def test_names_are_escaped() -> None:
    evil = '"><script>alert(1)</script>'
    for chart in (charts.rows([(evil, 1)], evil, evil), charts.bars([(evil, 1)], evil, evil)):
        assert "<script" not in chart
        assert drawn(chart).attrib["aria-label"] == evil
