"""Reading the texts of workouts: their items, with the identifiers of what the lines name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.training.workout_text.lines import ParsedWorkout, Problem, describe_lone_labels, parse_items
from coaching_service.training.workout_text.mentions import resolve_workouts
from coaching_service.training.workouts.blocks.load_conversion import store_loads
from coaching_service.training.workouts.items.input_models import ItemInput


@dataclass(frozen=True)
class ReadTexts:
    """The items of texts, in the order of the texts.

    `remarks` are sentences, each with a space before it, about names that were read as other names and about labels
    that make no superset.
    """

    items: list[list[ItemInput]]
    remarks: str


async def read_texts(
    ctx: Context,
    texts: Sequence[tuple[str, str]],
    earlier: Sequence[Problem] = (),
    customer_id: ObjectId | None = None,
) -> ReadTexts:
    """Return the items of texts, each given with the field of the request that has it.

    With a client, names of exercises mean first those on the client's calendar.

    Raises TextError for all lines that cannot be read or name nothing, with their numbers, and for `earlier` problems.
    """
    load_unit = ctx.caller.load_unit
    parsed = [parse_items(text, load_unit, path) for path, text in texts]
    read_as = await resolve_workouts(ctx, [ParsedWorkout(problems=list(earlier)), *parsed], customer_id)
    store_loads([item.item for workout in parsed for item in workout.items], ctx)
    items = [[item.details for item in workout.items] for workout in parsed]
    return ReadTexts(items, read_as + describe_lone_labels(parsed))
