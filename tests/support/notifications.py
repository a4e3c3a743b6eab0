"""Sending what is due as if it were later."""

from __future__ import annotations

from datetime import datetime, timedelta

import time_machine

from coaching_service import features
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people import notifications
from tests.support.service_process import until


async def send_due(ctx: Context, *, after: timedelta = timedelta(0)) -> None:
    """Send what is due of the company so much later; the service of the tests may do so at the same moment."""
    services = ctx.services
    with time_machine.travel(datetime.now().astimezone() + after):

        async def is_sent() -> bool:
            while await notifications.send_next(services, features.NOTIFICATIONS, features.queue_push):
                pass
            # What the service has claimed is due again after its lease.
            claimed = {"companyId": ctx.company_id, "sendAt": {"$lte": now() + notifications.LEASE}}
            return await services.db["notifications"].count_documents(claimed) == 0

        await until(is_sent, "what is due to be sent")


async def count_pending(ctx: Context, customer_id: str | None = None) -> int:
    """The number of notifications of the company, or about one client, that wait."""
    about = {} if customer_id is None else {"customerId": ObjectId(customer_id)}
    where = {"companyId": ctx.company_id, "sendAt": {"$ne": None}, **about}
    return await ctx.db["notifications"].count_documents(where)
