"""Done sets of an exercise of a workout as text: those without numbers are the working sets, if they are not more.

`8, 8, 7` of a plan with a warm-up set and three working sets are the working sets; four numbers are all sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.training.set_text.done import parse_done, write_done
from coaching_service.training.workouts.sets.models import CustomerSet, PlannedSet


def read_done_sets(text: str, load_unit: str, planned: Sequence[PlannedSet]) -> list[CustomerSet]:
    """Return the done sets of a text with the numbers of the planned sets. Raises SetTextError."""
    done = parse_done(text, load_unit)
    if "#" in text:
        return done
    return [{**each, "index": index} for each, index in zip(done, _usual_indexes(planned, len(done)), strict=True)]


def write_done_sets(done: Sequence[CustomerSet], load_unit: str, planned: Sequence[PlannedSet]) -> str:
    """Return done sets as the text that `read_done_sets` reads as the same sets."""
    indexes = [each["index"] for each in done]
    if indexes == _usual_indexes(planned, len(done)):
        return write_done([{**each, "index": index} for index, each in enumerate(done, 1)], load_unit)
    text = write_done(done, load_unit)
    return text if "#" in text else f"#1 {text}"


def _usual_indexes(planned: Sequence[PlannedSet], count: int) -> list[int]:
    """Return the numbers of done sets that do not state them."""
    working = [each["index"] for each in planned if not each["isWarmup"]]
    return working[:count] if count <= len(working) else list(range(1, count + 1))
