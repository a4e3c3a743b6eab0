"""The items of a client's workout in the order in which they are done: single items, supersets and circuits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import ExerciseItem, WorkItem
from coaching_service.web.views.train.workout.rows import ItemRows, SetRow, circuit_rows, exercise_rows


@dataclass(frozen=True)
class Guide:
    """An exercise with the coach's instructions, which may be empty."""

    exercise_id: ObjectId
    name: str
    instructions: str


@dataclass(frozen=True)
class Card:
    """One item: `number` is its place in a superset, such as `A1`; `guides` are its exercises."""

    item: WorkItem
    title: str
    number: str
    guides: Sequence[Guide]
    sets: ItemRows

    @property
    def rounds(self) -> Sequence[tuple[int, Sequence[SetRow]]]:
        """The rows of a circuit by round."""
        rounds: dict[int, list[SetRow]] = {}
        for row in self.sets.rows:
            rounds.setdefault(row.round or 1, []).append(row)
        return list(rounds.items())


@dataclass(frozen=True)
class Group:
    """Items that are done together: one, or the items of a superset with its `letter`."""

    letter: str
    cards: Sequence[Card]

    @property
    def rounds(self) -> Sequence[tuple[int, Sequence[SetRow]]]:
        """The rows of a superset by round: the first sets of its exercises, then the second ones, and so on.

        The rest of a round follows its last set.
        """
        active = [card.sets.rows for card in self.cards if not card.item.get("skipped")]
        count = max((len(rows) for rows in active), default=0)
        return [(at + 1, _rest_after_last([rows[at] for rows in active if at < len(rows)])) for at in range(count)]


def _rest_after_last(rows: Sequence[SetRow]) -> list[SetRow]:
    """Return the rows of a round with a rest after the last one only: its own, else the longest of the others."""
    *others, last = rows
    rest = last.rest or max((row.rest or 0 for row in others), default=0)
    return [*(replace(row, rest=None) for row in others), replace(last, rest=rest or None)]


def group_items(block: Block, unit: str) -> list[Group]:
    """Return the items of a workout in groups; loads are in `unit`."""
    supersets: dict[str, list[ExerciseItem]] = {}
    for item in block["items"]:
        if item["type"] == "EXERCISE" and item["supersetId"]:
            supersets.setdefault(item["supersetId"], []).append(item)
    letters = iter(_letters())
    groups: list[Group] = []
    for item in block["items"]:
        members = supersets.get(item["supersetId"] or "", []) if item["type"] == "EXERCISE" else []
        if len(members) < 2:
            groups.append(Group("", [_card(item, unit)]))
        elif members[0] is item:
            letter = next(letters)
            cards = [_card(member, unit, f"{letter}{at}") for at, member in enumerate(members, start=1)]
            groups.append(Group(letter, cards))
    return groups


def rows_of(groups: Sequence[Group]) -> list[SetRow]:
    """Return every set that is planned or logged, without sets of skipped items that are not done."""
    return [
        row
        for group in groups
        for card in group.cards
        for row in card.sets.rows
        if row.is_done or not card.item.get("skipped")
    ]


def _letters() -> Iterator[str]:
    yield from ascii_uppercase
    yield from (first + second for first in ascii_uppercase for second in ascii_uppercase)


def _card(item: WorkItem, unit: str, number: str = "") -> Card:
    title = describe_item(item, unit)["title"]
    if item["type"] == "EXERCISE":
        swap = item.get("swappedFor")
        name = swap["exercise"] if swap else item["exercise"]
        instructions = (None if swap else item["exerciseInstructions"]) or name["defaultInstructions"] or ""
        sets = exercise_rows(item, unit)
        if number:
            sets = replace(sets, rows=[replace(row, number=number) for row in sets.rows])
        return Card(item, name["name"], number, [Guide(name["_id"], name["name"], instructions)], sets)
    if item["type"] == "CIRCUIT":
        guides = [
            Guide(
                entry["exerciseId"],
                entry["exercise"]["name"],
                entry["instructions"] or entry["exercise"]["defaultInstructions"] or "",
            )
            for entry in item["circuitExercises"]
        ]
        return Card(item, item["circuitName"], "", guides, circuit_rows(item, unit))
    return Card(item, title, "", (), ItemRows())
