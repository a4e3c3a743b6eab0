"""What the list of clients shows of each: the last seven days, unread messages and the portrait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import profile_photos
from coaching_service.people.customers.models import CustomerProfile
from coaching_service.progress.compliance import service as compliance
from coaching_service.progress.conversation import service as conversation
from coaching_service.training.workouts.reports.calendar_days import Status
from coaching_service.web.views.availability_forms import describe_present

_DAYS = 7
DayState = Status | Literal["none"]
_WORDS: Mapping[DayState, str] = {
    "done": "done",
    "part": "partly done",
    "missed": "missed",
    "planned": "planned",
    "rest": "rest",
    "away": "away or ill",
    "none": "nothing",
}


class DayDot(TypedDict):
    """A day of a client, and the day in words such as `Mon 2 Mar: done`."""

    state: DayState
    text: str


class CustomerRow(TypedDict):
    """A client of the list.

    `portrait` is the address of a thumbnail, `absence` a present period of availability in words, or empty.
    """

    customer: CustomerProfile
    name: str
    portrait: str | None
    days: list[DayDot]
    unread: int
    absence: str


async def describe_rows(ctx: Context, listed: Sequence[CustomerProfile]) -> list[CustomerRow]:
    """Describe clients, in a few queries for any number of them."""
    today_of = {each["_id"]: ctx.caller.today(each["timezone"]) for each in listed}
    ids: list[ObjectId] = list(today_of)
    days_of, unread, portraits, absences = await gather_reads(
        ctx,
        compliance.get_recent_days(ctx, today_of, _DAYS),
        conversation.count_unread(ctx, ids),
        profile_photos.find_portraits(ctx, ids),
        describe_present(ctx, today_of),
    )
    unread_of = {each["_id"]: each["count"] for each in unread}
    return [
        {
            "customer": each,
            "name": " ".join(filter(None, (each["name"], each["surname"]))),
            "portrait": portraits.get(each["_id"]),
            "days": [_describe_day(day, status) for day, status in days_of[each["_id"]]],
            "unread": unread_of.get(each["_id"], 0),
            "absence": absences.get(each["_id"], ""),
        }
        for each in listed
    ]


def _describe_day(day: str, status: Status | None) -> DayDot:
    at, state = date.fromisoformat(day), status or "none"
    return {"state": state, "text": f"{at:%a} {at.day} {at:%b}: {_WORDS[state]}"}
