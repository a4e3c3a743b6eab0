"""Which days of their calendar a client sees."""

from __future__ import annotations

from datetime import date, timedelta

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads, in_transaction
from coaching_service.core.errors import BadRequest
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.training.visibility import store

MAX_RANGE = 1_100


async def between(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[Document]:
    """`{date, isVisible}` of every day from `first` to `last`.

    Raises NotFound, Forbidden; BadRequest for more than three years.
    """
    days = _days(first, last)
    _, hidden = await gather_reads(
        ctx, customers.get_visible(ctx, customer_id), store.between(ctx, customer_id, first, last)
    )
    return [{"date": day, "isVisible": day not in hidden} for day in days]


async def hidden_days(ctx: Context, customer_id: ObjectId, first: str, last: str) -> set[str]:
    """The days from `first` to `last` that the client, who has been checked, does not see."""
    return await store.between(ctx, customer_id, first, last)


async def set_between(ctx: Context, customer_id: ObjectId, first: str, last: str, *, visible: bool) -> list[Document]:
    """Show or hide every day from `first` to `last`; gives them.

    Raises NotFound, Forbidden; BadRequest for more than three years.
    """
    await customers.get_visible(ctx, customer_id)
    days = _days(first, last)

    async def changed(tx: Context) -> None:
        await store.show(tx, customer_id, first, last)
        if not visible:
            await store.hide(tx, customer_id, days)

    await in_transaction(ctx, changed)
    return [{"date": day, "isVisible": visible} for day in days]


def _days(first: str, last: str) -> list[str]:
    start = date.fromisoformat(first)
    count = (date.fromisoformat(last) - start).days + 1
    if count > MAX_RANGE:
        raise BadRequest([f"endDate must not be more than {MAX_RANGE - 1} days after startDate"])
    return [str(start + timedelta(days=number)) for number in range(count)]
