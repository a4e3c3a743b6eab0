"""The alert rules and the dashboard in deploy/: every expression is valid, and uses metrics and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import promql_parser as promql
import pytest
import yaml

from coaching_service import features
from coaching_service.core.metrics import Metrics
from coaching_service.people.customers.models import FigureLane
from tests.unit.test_documentation import anchors

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yml"
RULES: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
OF_THE_SCRAPE = {"job", "instance"}
HISTOGRAMS = ("_bucket", "_count", "_sum")


def series() -> dict[str, set[str]]:
    """The labels of each series that Prometheus stores, by its name."""
    metrics, labels = Metrics(), {"up": OF_THE_SCRAPE}
    types = {family.name: family.type for family in metrics.registry.collect()}
    for name, own in metrics.declared.items():
        if types.get(name) == "histogram":
            labels |= {name + end: {*own, *OF_THE_SCRAPE, *(["le"] if end == "_bucket" else [])} for end in HISTOGRAMS}
        else:
            labels[name] = {*own, *OF_THE_SCRAPE}
    return labels


SERIES = series()


def parse(expression: str) -> Any:
    """Parse an expression; variables of Grafana are replaced."""
    return promql.parse(expression.replace("$__rate_interval", "5m").replace("$instance", ".*"))


def children(node: Any) -> Iterator[Any]:
    """The nodes directly inside of a node."""
    match type(node):
        case promql.BinaryExpr:
            yield from (node.lhs, node.rhs)
        case promql.Call:
            yield from node.args
        case promql.MatrixSelector:
            yield node.vector_selector
        case promql.AggregateExpr | promql.ParenExpr | promql.UnaryExpr | promql.SubqueryExpr:
            yield node.expr


def selectors(node: Any) -> list[Any]:
    """The selectors of series in an expression."""
    own = [node] if isinstance(node, promql.VectorSelector) else []
    return own + [each for child in children(node) for each in selectors(child)]


def result_labels(node: Any) -> set[str]:
    """The labels that the result of an expression has. Fails for an aggregation by labels that do not exist."""
    if isinstance(node, promql.VectorSelector):
        return set(SERIES[str(node.name)])
    inner = set().union(*(result_labels(child) for child in children(node)))
    if isinstance(node, promql.AggregateExpr):
        if str(node.op) in ("topk", "bottomk"):
            return inner
        grouped = set(node.modifier.labels) if node.modifier is not None else set()
        assert grouped <= inner, f"{sorted(grouped - inner)} in {node}"
        return grouped
    if isinstance(node, promql.Call) and node.func.name == "histogram_quantile":
        assert "le" in inner, node
        return inner - {"le"}
    return inner


def problems(expression: str) -> list[str]:
    """What an expression names that does not exist."""
    problems = []
    for selector in selectors(parse(expression)):
        if selector.name not in SERIES:
            problems.append(f"no metric {selector.name}")
            continue
        names = {matcher.name for matcher in selector.matchers.matchers}
        problems += [f"no label {name} of {selector.name}" for name in sorted(names - SERIES[selector.name])]
        if "job" not in names:
            problems.append(f"{selector.name} of any job")
    return problems


def targets() -> list[tuple[str, str]]:
    """The expressions of the dashboard, and how their lines are named."""
    return [(each["expr"], each["legendFormat"]) for panel in PANELS for each in panel.get("targets", ())]


def named_labels(template: str) -> set[str]:
    """The labels that the text of an alert or a legend names."""
    return set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", template))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_alert_is_complete_and_names_what_exists(rule: dict[str, Any]) -> None:
    assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert re.fullmatch(r"Coaching[A-Z][A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert problems(rule["expr"]) == []
    assert isinstance(parse(rule["expr"]), promql.BinaryExpr), "a comparison"
    assert named_labels(rule["annotations"]["summary"]) <= result_labels(parse(rule["expr"]))


def test_alerts_have_different_names_and_the_usual_layout() -> None:
    document = yaml.safe_load(ALERTS.read_text())
    assert set(document) == {"groups"}
    assert [set(group) for group in document["groups"]] == [{"name", "rules"}]
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_each_alert_has_a_section_that_says_what_to_do() -> None:
    text = (ROOT / "docs" / "alerts.md").read_text("utf-8")
    headings = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert [f"Coaching{heading}" for heading in headings] == [rule["alert"] for rule in RULES]
    for rule in RULES:
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert page == "docs/alerts.md"
        assert anchor in anchors(text), anchor
    for heading, section in zip(headings, re.split(r"^## \w+$", text, flags=re.MULTILINE)[1:], strict=True):
        severity = next(rule["labels"]["severity"] for rule in RULES if rule["alert"] == f"Coaching{heading}")
        assert section.strip().startswith(f"Severity: {severity}. "), heading
        assert re.search(r"^1\. ", section, re.MULTILINE), heading


@pytest.mark.parametrize(("expression", "legend"), targets())
def test_expression_of_the_dashboard_names_what_exists(expression: str, legend: str) -> None:
    assert problems(expression) == []
    assert named_labels(legend) <= result_labels(parse(expression))


def test_dashboard_shows_each_metric() -> None:
    shown = {selector.name for expression, _ in targets() for selector in selectors(parse(expression))}
    missing = {name for name in Metrics().declared if not shown & {name, *(name + end for end in HISTOGRAMS)}}
    assert missing == {"process_virtual_memory_bytes"}


def test_panels_have_identifiers_and_places_of_their_own() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    covered: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not covered & cells, panel["title"]
        covered |= cells


def test_panels_ask_the_chosen_data_source() -> None:
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", "instance"]
    for panel in PANELS:
        assert panel["type"] in ("row", "stat", "timeseries")
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert [target["refId"] for target in panel["targets"]] == list("ABCDEF"[: len(panel["targets"])])
            assert panel["fieldConfig"]["defaults"]["unit"]


# Every kind of job and every value that is computed later: a metric of how far it is behind, an alert, what to do.


def alerts_on(metric: str) -> list[str]:
    """The names of the rules with this metric."""
    return [rule["alert"] for rule in RULES if metric in {each.name for each in selectors(parse(rule["expr"]))}]


# Written by hand: add a value here, its metric, alert and panel when it is computed after its transaction.
LAGS = {
    "figures": "figures_oldest_due_seconds",
    "check-ins": "check_ins_oldest_due_seconds",
    "notifications": "notifications_oldest_due_seconds",
    "numbers of changes": "change_log_oldest_pending_seconds",
    "deliveries of webhooks": "webhook_oldest_pending_seconds",
    "backups": "backup_age_seconds",
    "verifications of backups": "verify_age_seconds",
    "mail": "mail_oldest_seconds",
    "jobs": "jobs_oldest_pending_seconds",
}


@pytest.mark.parametrize(("value", "metric"), LAGS.items())
def test_each_value_that_follows_later_has_a_metric_and_an_alert(value: str, metric: str) -> None:
    assert metric in Metrics().declared, value
    assert metric.endswith("_seconds")
    assert alerts_on(metric), value


def test_each_lane_of_figures_has_an_alert() -> None:
    figures = [rule["expr"] for rule in RULES if "figures_oldest_due_seconds" in rule["expr"]]
    assert [lane for lane in get_args(FigureLane) if any(f'lane="{lane}"' in each for each in figures)] == [
        "changes",
        "daily",
    ]


def test_what_permanent_jobs_renew_has_a_lag() -> None:
    """Their own lag says nothing: they look for work that waits elsewhere."""
    assert set(features.STANDING_JOBS) <= set(features.STEPS)
    assert set(features.STANDING_JOBS.values()) <= set(LAGS.values())


def test_an_alert_and_the_runbook_cover_each_kind_of_job() -> None:
    expression = next(rule["expr"] for rule in RULES if rule["alert"] == "CoachingJobsStuck")
    [selector] = selectors(parse(expression))
    assert {matcher.name for matcher in selector.matchers.matchers} == {"job"}, "the alert is for all kinds"
    runbook = (ROOT / "docs" / "alerts.md").read_text("utf-8")
    section = runbook.split("## JobsStuck\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(kind for row in rows for kind in re.findall(r"`(\w+)`", row)) == sorted(features.STEPS)


def test_growing_has_the_cost_of_each_kind_of_job() -> None:
    text = (ROOT / "docs" / "growing.md").read_text("utf-8")
    section = text.split("## Background jobs\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(kind for row in rows for kind in re.findall(r"`(\w+)`", row)) == sorted(features.STEPS)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ('http_request_seconds_count{job="x"} > 0', "no metric http_request_seconds_count"),
        ('http_requests_total{job="x",path="/"} > 0', "no label path of http_requests_total"),
        ("http_requests_in_flight > 0", "http_requests_in_flight of any job"),
    ],
)
def test_what_does_not_exist_is_noticed(expression: str, problem: str) -> None:
    assert problems(expression) == [problem]
