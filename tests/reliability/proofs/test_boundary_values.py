"""The product of what tests/hostile/test_boundary_values.py samples: each value of each field alone, in declared time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable

from tests.contract.test_declared import request_options
from tests.hostile.cases import ROUTES
from tests.hostile.readings import of_client
from tests.hostile.test_boundary_values import (
    Inhabited,
    Written,
    approve_all,
    form_cases,
    inhabited,  # noqa: F401 - a fixture
    read_all,
    read_webhooks,
    rest_cases,
    tool_cases,
)

SECONDS = 240  # in which values are sent; reading everything afterwards takes about as long
ALONE, EIGHT = 2.0, 5.0


async def test_each_value_of_each_field_is_read_everywhere(
    inhabited: Inhabited,  # noqa: F811 - the fixture that is imported above
    record_property: Callable[[str, object], None],
) -> None:
    """A random part of all values, as many as are sent in the declared time, in random order."""
    written, seed = Written(), random.randrange(10_000)
    cases = [
        *rest_cases(inhabited, written, about_client=True, every=True),
        *rest_cases(inhabited, written, about_client=False, every=True),
        *tool_cases(inhabited, written, every=True),
        *form_cases(inhabited, written, every=True),
    ]
    random.Random(seed).shuffle(cases)
    end, sent = time.monotonic() + SECONDS, 0
    while sent < len(cases) and time.monotonic() < end:
        await cases[sent]()
        sent += 1
    await approve_all(inhabited, written)
    part = f"seed {seed}: {sent} of {len(cases)} sent, {written.accepted} accepted, {written.refused} refused"
    record_property("values at the bounds", part)
    problems = list(written.failures) + await read_all(inhabited) + await read_webhooks(inhabited)
    assert not problems, part + "\n" + "\n".join(str(each)[:600] for each in problems)
    assert sent > 500


async def test_no_answer_is_slow_with_eight_at_once(inhabited: Inhabited) -> None:  # noqa: F811 - the fixture that is imported above
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
