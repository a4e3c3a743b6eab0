"""The product of what tests/hostile/test_boundary_values.py samples: each value of each field alone, of every body, tool and form."""

from __future__ import annotations

import asyncio
import time

from tests.contract.test_declared import request_options
from tests.hostile.cases import ROUTES
from tests.hostile.readings import of_client
from tests.hostile.test_boundary_values import (
    Inhabited,
    Written,
    inhabited,  # noqa: F401 - a fixture
    read_all,
    write_forms,
    write_rest,
    write_tools,
)

ALONE, EIGHT = 2.0, 5.0


async def test_each_value_of_each_field_is_read_everywhere(inhabited: Inhabited) -> None:  # noqa: F811
    written = Written()
    for about_client in (True, False):
        await write_rest(inhabited, written, about_client=about_client, every=True)
    await write_tools(inhabited, written, every=True)
    await write_forms(inhabited, written, every=True)
    problems = list(written.failures) + await read_all(inhabited)
    assert not problems, "\n".join(str(each)[:600] for each in problems)


async def test_no_answer_is_slow_with_eight_at_once(inhabited: Inhabited) -> None:  # noqa: F811
    """Each read about a client, alone and eight times at once, by the processor time of the client and the service."""
    slow, own = [], inhabited.clients["injured"]
    for route in ROUTES:
        if route.method == "GET" and of_client(route.path, route.access.audience) and route.request_class != "bulk":
            params = request_options(route, own)["params"]
            for count, seconds in ((1, ALONE), (8, EIGHT)):
                began = time.process_time()
                await asyncio.gather(*(inhabited.caller.send(route, own, params=params) for _ in range(count)))
                if (taken := time.process_time() - began) > seconds:
                    slow.append((route.path, count, taken))
    assert slow == []
