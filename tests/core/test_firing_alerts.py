"""Alert rules on real metrics: each fires from its fault, and not before it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import promql_parser as promql
from prometheus_client.parser import text_string_to_metric_families

from coaching_service import features
from coaching_service.app import READINGS
from coaching_service.core.database.backup.stores import open_store
from coaching_service.core.database.context import Context, Services
from coaching_service.core.jobs import mail, worker
from coaching_service.core.metrics import Metrics
from coaching_service.lifecycle.administration import backups
from coaching_service.people.customers import creation
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.databases import new_database
from tests.support.mail_servers import Mailbox, sending_to
from tests.unit.test_monitoring import RULES, parse

Vector = dict[frozenset[tuple[str, str]], float]
Scrape = dict[tuple[str, frozenset[tuple[str, str]]], float]
_COMPARE = {">": float.__gt__, "<": float.__lt__, "==": float.__eq__}


async def scrape(services: Services) -> Scrape:
    """What Prometheus stores of one request to /metrics."""
    for reading in READINGS:
        await reading(services)
    families = text_string_to_metric_families(services.metrics.report())
    return {(each.name, frozenset(each.labels.items())): each.value for family in families for each in family.samples}


def evaluate(node: Any, first: Scrape, last: Scrape) -> Vector:
    """The result of an expression after a fault that lasted from one scrape to the next, for as long as ranges are."""
    match type(node):
        case promql.ParenExpr:
            return evaluate(node.expr, first, last)
        case promql.NumberLiteral:
            return {frozenset(): float(node.val)}
        case promql.VectorSelector:
            wanted = {(each.name, each.value) for each in node.matchers.matchers if each.name != "job"}
            return {labels: value for (name, labels), value in last.items() if name == node.name and wanted <= labels}
        case promql.Call:
            assert node.func.name == "increase"
            selector = node.args[0].vector_selector
            before, after = evaluate(selector, first, first), evaluate(selector, last, last)
            return {labels: value - before.get(labels, 0.0) for labels, value in after.items()}
        case promql.AggregateExpr:
            values = list(evaluate(node.expr, first, last).values())
            assert str(node.op) in ("max", "sum")
            return {frozenset(): max(values) if str(node.op) == "max" else sum(values)} if values else {}
    assert isinstance(node, promql.BinaryExpr)
    left, right = (evaluate(side, first, last) for side in (node.lhs, node.rhs))
    if str(node.op) == "and":
        return {labels: value for labels, value in left.items() if labels in right}
    limit = right[frozenset()]
    return {labels: value for labels, value in left.items() if _COMPARE[str(node.op)](value, limit)}


def fires(alert: str, first: Scrape, last: Scrape) -> bool:
    """Whether the rule has a result."""
    expression = next(rule["expr"] for rule in RULES if rule["alert"] == f"Coaching{alert}")
    return bool(evaluate(parse(expression), first, last))


async def test_a_dead_mail_server_raises_an_alert(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    steps = {mail.SEND: features.STEPS[mail.SEND]}
    measured = replace(mailing, metrics=Metrics())
    healthy = await scrape(measured)
    ctx = Context(measured, coach.ctx.principal)
    await creation.create_customer(ctx, {"name": "Ana", "email": "ana@example.com"}, send_invitation=True)
    await worker.run_due(sending_to(measured, port=9), steps)
    assert not fires("MailNotSent", healthy, await scrape(measured)), "it has just begun"
    an_hour = {"$subtract": ["$createdAt", 3_600_000]}
    await measured.db["jobs"].update_many({"kind": mail.SEND}, [{"$set": {"createdAt": an_hour}}])
    broken = await scrape(measured)
    assert fires("MailNotSent", healthy, broken)
    await measured.db["jobs"].update_many({"kind": mail.SEND}, [{"$set": {"runAfter": "$$NOW"}}])
    await worker.run_due(measured, steps)
    assert len(mailbox[0].mails) == 1
    assert not fires("MailNotSent", broken, await scrape(measured)), "the server is back"


async def test_backups_and_erasures_that_fail_raise_alerts(settings: Settings, tmp_path: Path) -> None:
    """No backup, none verified, and a store that cannot be written."""
    async with new_database(settings, "alerts") as (_, opened):
        store = open_store(str(tmp_path / "store"))
        services = replace(opened, metrics=Metrics(), backup_store=store)
        empty = await scrape(services)
        assert fires("BackupMissing", empty, empty)
        assert fires("BackupsNotVerified", empty, empty)
        assert not fires("ErasuresNotStored", empty, empty)
        await backups.record_verification(services, "root", 1, 1)
        await services.db["erasures"].insert_one({"storedAt": None, "erasedAt": None, "erasedCustomerIds": []})
        verified = await scrape(services)
        assert not fires("BackupsNotVerified", empty, verified)
        assert fires("ErasuresNotStored", empty, verified)
        await services.db["erasures"].delete_many({})
        assert not fires("ErasuresNotStored", empty, await scrape(services))
        long_ago = [{"$set": {"moment": "2020-01-01T00:00:00+00:00"}}]
        await services.db["operatorActions"].update_many({}, long_ago)
        assert fires("BackupsNotVerified", empty, await scrape(services))
