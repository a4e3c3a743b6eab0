"""The calls of tools in the benchmark of peers, and the responses that fail a slot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bson import ObjectId

from benchmarks import slots
from benchmarks.peers.mcp_calls import calls_of, headers_of

WRK = """\
  50%    5.00ms
  99%    9.00ms
  100 requests in 1.00s, 1.00MB read
Requests/sec:    100.00
"""


def _workout() -> dict[str, Any]:
    kinds = ("TASK", "EXERCISE", "EXERCISE")
    items = [{"_id": ObjectId(), "type": kind} for kind in kinds]
    return {"_id": ObjectId(), "customerId": ObjectId(), "items": items}


def test_each_exercise_is_logged_once_and_one_client_after_another() -> None:
    day = [_workout(), _workout()]
    calls = [json.loads(line)["params"] for line in calls_of([day])]
    logged = [(call["arguments"]["workoutId"], call["arguments"]["text"].split(":")[0]) for call in calls]
    assert logged == [(str(block["_id"]), f"#{block['items'][at]['_id']}") for at in (1, 2) for block in day]
    assert {call["name"] for call in calls} == {headers_of("log_workout")["Mcp-Name"]}


@pytest.mark.parametrize(
    "failure", ["Non-2xx or 3xx responses: 1", "Socket errors: connect 1", 'Unexpected response: {"isError":true}']
)
def test_a_slot_with_a_failure_is_refused(failure: str) -> None:
    assert slots.read(WRK, 0.5, 0.25).cpu == 5_000
    with pytest.raises(slots.BadSlot):
        slots.read(f"{failure}\n{WRK}", 0.5, 0.25)
