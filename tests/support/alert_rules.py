"""Alert rules on what Prometheus would have stored: PromQL, evaluated on a few scrapes of a running service."""

from __future__ import annotations

import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import aiohttp
import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.test_monitoring import RULES, parse

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Scrape = dict[tuple[str, Labels], float]
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "*": operator.mul,
    "-": operator.sub,
    "/": lambda left, right: left / right if right else math.nan,
}
_AGGREGATIONS: dict[str, Callable[[list[float]], float]] = {"max": max, "sum": math.fsum, "count": len}
_NONE: Labels = frozenset()
UP: tuple[str, Labels] = ("up", _NONE)


def stored(report: str) -> Scrape:
    """What Prometheus stores of a response of /metrics."""
    families = text_string_to_metric_families(report)
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


async def scrape(address: str) -> Scrape:
    """What Prometheus stores of a target; `up` is its own, 0 when there is no response."""
    try:
        async with aiohttp.ClientSession() as http, http.get(f"{address}/metrics") as response:
            response.raise_for_status()
            return {UP: 1.0} | stored(await response.text())
    except aiohttp.ClientError:
        return {UP: 0.0}


def firing(*scrapes: Scrape) -> set[str]:
    """The alerts whose rule has a result at the last scrape, after a fault that began behind the first.

    Ranges and `for` are as long as the fault has lasted: they end with the last scrape, and those of `offset` before
    it. Rates are per second of the range in the rule, as if the scrapes were as far apart.
    """
    return {rule["alert"].removeprefix("Coaching") for rule in RULES if _evaluate(parse(rule["expr"]), scrapes)}


def _evaluate(node: Any, scrapes: Sequence[Scrape]) -> Vector:
    """The result of an expression."""
    match type(node):
        case promql.ParenExpr:
            return _evaluate(node.expr, scrapes)
        case promql.NumberLiteral:
            return {_NONE: float(node.val)}
        case promql.VectorSelector:
            return _select(node, scrapes[0 if node.offset else -1])
        case promql.Call:
            return _call(node, scrapes)
        case promql.AggregateExpr:
            return _aggregate(node, _evaluate(node.expr, scrapes))
    assert isinstance(node, promql.BinaryExpr), node
    return _combine(node, _evaluate(node.lhs, scrapes), _evaluate(node.rhs, scrapes))


def _select(selector: Any, scrape: Scrape) -> Vector:
    """The series of one scrape."""
    matchers = [each for each in selector.matchers.matchers if each.name != "job"]
    return {
        labels: value
        for (name, labels), value in scrape.items()
        if name == selector.name and all(_matches(each, dict(labels).get(each.name, "")) for each in matchers)
    }


def _matches(matcher: Any, value: str) -> bool:
    match str(matcher.op).rpartition(".")[2]:
        case "Equal":
            return bool(value == matcher.value)
        case "NotEqual":
            return bool(value != matcher.value)
        case "Re":
            return re.fullmatch(matcher.value, value) is not None
        case "NotRe":
            return re.fullmatch(matcher.value, value) is None
    raise AssertionError(matcher.op)


def _call(node: Any, scrapes: Sequence[Scrape]) -> Vector:
    name, last = node.func.name, node.args[-1]
    if name == "absent":
        return {} if _evaluate(last, scrapes) else {_NONE: 1.0}
    if name == "histogram_quantile":
        return _quantiles(node.args[0].val, _evaluate(last, scrapes))
    series: defaultdict[Labels, list[float]] = defaultdict(list)
    for each in scrapes[1:] if name == "min_over_time" else scrapes:
        for labels, value in _select(last.vector_selector, each).items():
            series[labels].append(value)
    of_range = {labels: _OVER_TIME[name](values) for labels, values in series.items()}
    seconds = last.range.total_seconds() if name == "rate" else 1.0
    return {labels: value / seconds for labels, value in of_range.items() if value is not None}


def _increase(values: list[float]) -> float | None:
    """The increase of a counter, which begins again at zero; of one value there is none."""
    if len(values) < 2:
        return None
    return sum(after - before if after >= before else after for before, after in pairwise(values))


_OVER_TIME: dict[str, Callable[[list[float]], float | None]] = {
    "rate": _increase,
    "increase": _increase,
    "min_over_time": min,
    "changes": lambda values: float(sum(before != after for before, after in pairwise(values))),
}


def _aggregate(node: Any, vector: Vector) -> Vector:
    kept = set(node.modifier.labels) if node.modifier is not None else set()
    groups: defaultdict[Labels, list[float]] = defaultdict(list)
    for labels, value in vector.items():
        groups[frozenset(each for each in labels if each[0] in kept)].append(value)
    return {labels: float(_AGGREGATIONS[str(node.op)](values)) for labels, values in groups.items()}


def _quantiles(share: float, vector: Vector) -> Vector:
    """Quantiles of histograms, between the bounds of a bucket in proportion."""
    histograms: defaultdict[Labels, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in vector.items():
        bound = float(dict(labels)["le"])
        histograms[frozenset(each for each in labels if each[0] != "le")].append((bound, count))
    return {labels: _quantile(share, sorted(buckets)) for labels, buckets in histograms.items()}


def _quantile(share: float, buckets: list[tuple[float, float]]) -> float:
    rank, below, counted = share * buckets[-1][1], 0.0, 0.0
    if not rank:
        return math.nan
    for bound, count in buckets:
        if count >= rank:
            return below if bound == math.inf else below + (bound - below) * (rank - counted) / (count - counted)
        below, counted = bound, count
    raise AssertionError(buckets)


def _combine(node: Any, left: Vector, right: Vector) -> Vector:
    match sign := str(node.op):
        case "and":
            return {labels: value for labels, value in left.items() if labels in right}
        case "unless":
            return {labels: value for labels, value in left.items() if labels not in right}
        case "or":
            return right | left
    others = right if not isinstance(node.rhs, promql.NumberLiteral) else dict.fromkeys(left, right[_NONE])
    pairs = {labels: (value, others[labels]) for labels, value in left.items() if labels in others}
    if sign in _ARITHMETIC:
        return {labels: _ARITHMETIC[sign](*pair) for labels, pair in pairs.items()}
    return {labels: pair[0] for labels, pair in pairs.items() if _COMPARISONS[sign](*pair)}
