"""What is planned in an item, and changing it: sets, words, rounds. Forms and metric sets stay as they were chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from marshmallow import Schema, fields

from coaching_service.core.auth.access import coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Input, Integer, ListOf, Text, Version
from coaching_service.training.workouts import item_service, items
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.item_schemas import ITEM_CHANGE, NewReminderFields, NewTaskFields
from coaching_service.training.workouts.set_schemas import MAX_SETS
from coaching_service.web.pages import Redirect
from coaching_service.web.views.items import described, planned_lines
from coaching_service.web.views.workout import circuits
from coaching_service.web.views.workout.kind import ITEM, Handler, Kind
from coaching_service.web.views.workout.sets import KINDS, SPARE, SetRow, planned_sets, rows

_ENTRY = f"{ITEM}/exercises/{{exerciseId}}"


def _words() -> Text:
    return Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)


class _Form(Input):
    version = Version(required=True)


class _Sets(_Form):
    sets = ListOf(fields.Nested(SetRow), maximum=MAX_SETS + SPARE, load_default=list)
    instructions = _words()


class _Exercise(_Sets):
    supersetId = Text(allow_blank=True, allow_none=True, load_default=None)


class _Circuit(_Form):
    circuitName = Text(required=True)
    rounds = Integer(minimum=1, maximum=1_000, required=True)


class _Task(NewTaskFields, _Form):
    """What is to be done, and the version that this was typed on."""


class _Reminder(NewReminderFields, _Form):
    """What the client is reminded of and when, and the version that this was typed on."""


def declare(kind: Kind) -> None:
    """Declare the pages and forms that change what is planned."""
    item_page = _declare_item(kind)
    _declare_item_changes(kind, item_page)
    _declare_entry(kind, item_page)


def _declare_item(kind: Kind) -> Handler:
    @kind.pages.get(ITEM, access=coach(kind.edit), template="workout/item.html")
    async def item_page(ctx: Context, block_id: ObjectId, witem_id: ObjectId, **owner: ObjectId) -> Document:
        """What is planned in an item."""
        shown = await kind.page(ctx, owner, block_id)
        item, unit = _item(shown["block"], witem_id), ctx.caller.company.load_unit
        entries = item.get("circuitExercises") or ()
        return {
            **shown,
            **_for_sets(ctx, item.get("exerciseSets") or []),
            "version": shown["block"]["version"],
            "item": item,
            "entries": [entry | {"lines": planned_lines(entry["sets"], unit)} for entry in entries],
            "title": described(item, unit)["title"],
            "there": f"{shown['here']}/items/{witem_id}",
        }

    return item_page


def _declare_item_changes(kind: Kind, item_page: Handler) -> None:
    """What can be changed of each type of item: where its form goes, the form, and the change as it is sent."""

    def declare_one(path: str, name: str, schema: Schema, change_of: Callable[[Document], Document]) -> None:
        async def change(
            ctx: Context, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any], **owner: ObjectId
        ) -> Redirect:
            asked = ITEM_CHANGE.load(change_of(form) | {"version": form["version"]})
            await item_service.change_item(ctx, kind.owner_of(owner), block_id, witem_id, asked)
            return Redirect(kind.address(owner, block_id), "The changes are kept.")

        change.__name__ = name
        kind.pages.post(f"{ITEM}/{path}", access=coach(kind.edit), form=schema, on=item_page)(change)

    declare_one("sets", "change_sets", _Exercise(), _exercise_change)
    declare_one("circuit", "change_circuit", _Circuit(), lambda form: _only(form, "circuitName", "rounds"))
    declare_one("task", "change_task", _Task(), lambda form: {"taskFields": _only(form, "title", "description")})
    declare_one(
        *("reminder", "change_reminder", _Reminder()),
        lambda form: {"reminderFields": _only(form, "scheduledTime", "message")},
    )


def _exercise_change(form: Document) -> Document:
    named = {"exerciseInstructions": form["instructions"], "supersetId": form["supersetId"] or None}
    return {"exerciseSets": planned_sets(form["sets"]), **named}


def _only(form: Document, *names: str) -> Document:
    return {name: form[name] for name in names}


def _declare_entry(kind: Kind, item_page: Handler) -> None:
    edit = coach(kind.edit)

    @kind.pages.get(_ENTRY, access=edit, template="workout/entry.html")
    async def entry_page(
        ctx: Context, block_id: ObjectId, witem_id: ObjectId, exercise_id: ObjectId, **owner: ObjectId
    ) -> Document:
        """What is planned of an exercise in a circuit."""
        shown = await kind.page(ctx, owner, block_id)
        circuit = _item(shown["block"], witem_id)
        at = _entry(circuit, exercise_id)
        return {
            **shown,
            **_for_sets(ctx, circuit["circuitExercises"][at]["sets"]),
            "version": shown["block"]["version"],
            "circuit": circuit,
            "entry": circuit["circuitExercises"][at],
            "there": f"{shown['here']}/items/{witem_id}",
        }

    @kind.pages.post(_ENTRY, access=edit, form=_Sets(), on=entry_page)
    async def change_entry(
        ctx: Context,
        block_id: ObjectId,
        witem_id: ObjectId,
        exercise_id: ObjectId,
        form: dict[str, Any],
        **owner: ObjectId,
    ) -> Redirect:
        """Change the sets of an exercise in a circuit, and what is said of it."""
        sets = planned_sets(form["sets"])
        entry = {"exerciseId": str(exercise_id), "sets": sets, "instructions": form["instructions"]}
        there = await rewritten(ctx, owner, (block_id, witem_id, exercise_id), [entry], form["version"])
        return Redirect(there, "The changes are kept.")

    @kind.pages.post(f"{_ENTRY}/remove", access=edit, on=item_page)
    async def remove_entry(
        ctx: Context, block_id: ObjectId, witem_id: ObjectId, exercise_id: ObjectId, **owner: ObjectId
    ) -> Redirect:
        """Take an exercise out of a circuit; what was logged of it stays."""
        there = await rewritten(ctx, owner, (block_id, witem_id, exercise_id), [], None)
        return Redirect(there, "The exercise is taken out.")

    async def rewritten(
        ctx: Context,
        owner: Mapping[str, ObjectId],
        place: tuple[ObjectId, ObjectId, ObjectId],
        entries: list[Document],
        version: int | None,
    ) -> str:
        """Put `entries` where the exercise is; gives the address of the circuit."""
        block_id, witem_id, exercise_id = place
        block = await workouts.read(ctx, kind.owner_of(owner), block_id)
        circuit = _item(block, witem_id)
        at, others = _entry(circuit, exercise_id), circuits.as_sent(circuit)
        based_on = block if version is None else block | {"version": version}
        await circuits.rewrite(
            ctx, kind.owner_of(owner), based_on, circuit, [*others[:at], *entries, *others[at + 1 :]]
        )
        return f"{kind.address(owner, block_id)}/items/{witem_id}"


def _for_sets(ctx: Context, sets: list[Document]) -> Document:
    return {"rows": rows(sets), "kinds": KINDS, "unit": ctx.caller.company.load_unit}


def _item(block: Document, item_id: ObjectId) -> Document:
    found: Document = block["items"][items.find(block["items"], item_id)]
    return found


def _entry(circuit: Document, exercise_id: ObjectId) -> int:
    for at, entry in enumerate(circuit.get("circuitExercises") or ()):
        if entry["exerciseId"] == exercise_id:
            return at
    raise NotFound("exercise in the circuit")
