"""Erasing clients and companies again whom a restored database has, although they were erased since the backup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coaching_service.core.errors import NotFound
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Steps
from coaching_service.lifecycle.administration.service import Operator
from coaching_service.lifecycle.erasure import service as erasure
from coaching_service.lifecycle.erasure import tombstones
from coaching_service.lifecycle.erasure.tombstones import Tombstone
from coaching_service.people.account import service as account
from coaching_service.people.customers import bulk

_STEPS: Steps = {erasure.ERASE_CUSTOMER: erasure.erase_customer, account.ERASE: erasure.erase_company}


@dataclass
class Repetition:
    """How many clients and companies were erased again."""

    clients: int = 0
    companies: int = 0


async def repeat_erasures(operator: Operator, listed: Sequence[Tombstone], report: Callable[[int], None]) -> Repetition:
    """Erase again what the tombstones name and the database does not know as erased, with all its data.

    It can be repeated: what is erased already is not counted. `report` is called with 1 for each tombstone.
    """
    services, result = operator.services, Repetition()
    unknown = await tombstones.find_unknown(services, listed)
    report(len(listed) - len(unknown))
    for tombstone in unknown:
        try:
            ctx = await operator.acting_in(tombstone["erasedCompanyId"])
            if tombstone["erasedCustomerIds"]:
                result.clients += await bulk.erase(ctx, tombstone["erasedCustomerIds"])
            else:
                await account.delete(ctx)
                result.companies += 1
        except NotFound:  # the company is gone
            pass
        await tombstones.insert(services, tombstone)
        report(1)
    await worker.run_due(services, _STEPS)
    return result
