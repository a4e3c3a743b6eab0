"""The alert about a process that ends again and again, which takes four starts."""

from __future__ import annotations

import signal

from tests.core.test_firing_alerts import fires, silent
from tests.support.alert_rules import Scrape, scrape
from tests.support.drill import require_whole
from tests.support.service_process import Service


async def test_a_process_that_ends_again_and_again(service: Service, own_database: dict[str, str]) -> None:
    fault, scrapes = "the process ends again and again", list[Scrape]()
    for _ in range(4):
        await service.start(**own_database)
        assert not scrapes or silent(fault, *scrapes)
        scrapes.append(await scrape(service.facts["baseUrl"]))
        await service.end(signal.SIGKILL)
    assert fires(fault, *scrapes)
    await service.start(**own_database)
    await require_whole(service.facts["baseUrl"], service.facts["apiKey"], **own_database)
