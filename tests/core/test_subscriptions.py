"""Domain events reach exactly the subscribers that are assembled for them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from coaching_service import subscriptions
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.events import DomainEvent, EventBus
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from tests.support.client import CoachClient
from tests.support.syntax import parse

PACKAGE = Path(__file__).parents[2] / "coaching_service"


@dataclass(frozen=True)
class Happened(DomainEvent):
    """An event of this test."""

    number: int


async def test_subscribers_are_called_in_order(coach: CoachClient) -> None:
    calls: list[tuple[str, int]] = []

    async def first(_: Context, event: Happened) -> None:
        calls.append(("first", event.number))

    async def second(_: Context, event: Happened) -> None:
        calls.append(("second", event.number))

    events = EventBus()
    events.subscribe(Happened, first, second)
    await events.publish(coach.ctx, Happened(7))
    assert calls == [("first", 7), ("second", 7)]


async def test_service_without_subscriptions_refuses_to_publish(coach: CoachClient) -> None:
    """A script that forgets the subscriptions gets an error that says so, and stores nothing."""
    bare = replace(coach.ctx, services=replace(coach.ctx.services, events=EventBus()))
    with pytest.raises(RuntimeError, match=r"CustomersCreated has no subscriber: .*subscriptions\.assemble"):
        await batch.create_customer(bare, {"name": "Ana"})
    assert (await customers.list_customers(coach.ctx, archived=False, page=1, size=10))["totalDocs"] == 0


def test_every_declared_event_has_a_subscriber() -> None:
    declared = set()
    texts = [module.read_text("utf-8") for module in PACKAGE.rglob("*.py")]
    for text in (each for each in texts if "(DomainEvent" in each):
        for node in ast.walk(parse(text)):
            if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "DomainEvent" for base in node.bases):
                declared.add(node.name)
    assembled = {event_type.__name__ for event_type in subscriptions.assemble()._subscribers}
    assert (
        assembled
        == declared
        == {
            "ApplicationAllowed",
            "AvailabilityChanged",
            "BodyWeightsChanged",
            "CoachNotificationsChanged",
            "CoachRemoved",
            "CompanyDeleted",
            "CompanyResumed",
            "CompletedWorkChanged",
            "CustomersCreated",
            "CustomersDeleted",
            "DocumentsRestored",
            "DocumentsWritten",
            "EmailConfirmed",
            "FigureSettingsChanged",
            "GroupsChanged",
            "IdentityDisplaced",
            "ImportUndoRequested",
            "ItemLogged",
            "LoadTypeChanged",
            "LoadUnitChanged",
            "MessageCreated",
            "MessagesRead",
            "MessagesRecalled",
            "ProgramDeleted",
            "RecordedItemsRescheduled",
            "ResponseReplayed",
            "RestorationPlanned",
            "ScheduleChanged",
            "ScheduleShifted",
            "SessionsEnded",
            "SignInEmailChanged",
        }
    )


async def test_event_of_a_change_is_published_in_its_transaction_only(coach: CoachClient) -> None:
    """Else what follows from the change would be lost if the process ended between the two writes."""
    events = EventBus()
    calls: list[int] = []

    async def subscriber(_: Context, event: Happened) -> None:
        calls.append(event.number)

    events.subscribe(Happened, subscriber)
    ctx = replace(coach.ctx, services=replace(coach.ctx.services, events=events))
    with pytest.raises(RuntimeError, match="Happened is published outside of a transaction"):
        await ctx.publish(Happened(7))
    await in_transaction(ctx, lambda tx: tx.publish(Happened(7)))
    assert calls == [7]
