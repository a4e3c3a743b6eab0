"""What names of exercises mean, as it is asked for and returned."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import ListOf, Text
from coaching_service.library.exercises._resolution import MAX_NAME_LENGTH


class ExerciseNames(TypedDict):
    """Names of exercises, as people write them."""

    names: Annotated[
        list[str],
        ListOf(Text(max_length=MAX_NAME_LENGTH), minimum=1, maximum=50),
        Description("1 to 50 names or abbreviations, each of at most 80 characters."),
    ]


class ExerciseMatch(TypedDict):
    """An exercise that a name may mean."""

    _id: ObjectId
    name: str
    score: Annotated[
        float, Description("How much the name or an alias of the exercise resembles the name sent: 0 to 100.")
    ]


class ResolvedExerciseName(TypedDict):
    """The exercise that a name means."""

    name: Annotated[str, Description("The name as it was sent.")]
    match: Annotated[
        ExerciseMatch | None,
        Description(
            "null if no exercise is meant for sure: with exactly this name, in any order of its words, or else this "
            "alias, or else as the only one with all its words and numbers."
        ),
    ]
    alternatives: Annotated[list[ExerciseMatch], Description("Up to three other exercises, the best first.")]


class ResolvedExerciseNames(TypedDict):
    """What names mean, in the order of the request."""

    results: Annotated[list[ResolvedExerciseName], Description("One result for each name.")]
