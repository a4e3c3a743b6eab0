"""Workload over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import SearchedRange
from coaching_service.progress.workload import service
from coaching_service.progress.workload.service import Workload, WorkloadQuery

routes = Routes("/coach/customers/{customerId}/workload", tag="Workload")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=query_of(WorkloadQuery, SearchedRange)())
async def get_workload(ctx: Context, customer_id: ObjectId, query: WorkloadQuery) -> Workload:
    """Read how much a client trained.

    Lists every period of the range (less than 3,700 days), including empty ones. A session counts on its block's date.
    Session load is the rating of perceived exertion x minutes; the acute:chronic ratio compares the mean of 7 days with
    the mean of 28.
    """
    return await service.get_workload(ctx, customer_id, query["startDate"], query["endDate"], query["groupBy"])
