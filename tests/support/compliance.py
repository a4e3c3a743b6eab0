"""Blocks by what is done in them, for compliance."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.training import Json, block_with, log, path_of, task


async def schedule(coach: CoachClient, customer: Json, day: object, done: str) -> Json:
    """Create a block by its items: `x` completed, `-` not; `R` before them makes it a rest block."""
    marks = done.removeprefix("R")
    block = await block_with(coach, customer, *[task(mark) for mark in marks], date=str(day), name=done or "empty")
    for item, mark in zip(block["items"], marks, strict=True):
        if mark == "x":
            (await log(coach, block, item)).ok()
    if done != marks:
        (await coach.patch(path_of(block), {"isRest": True})).ok()
    return block
