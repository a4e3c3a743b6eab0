"""The review of a logged session: what was planned and done, records, comments, and what to review next."""

from __future__ import annotations

from datetime import date
from typing import Any

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.people import availability
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import ReasonType
from coaching_service.progress import form_checks
from coaching_service.progress.attention import service as attention
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import MessageSubjectInput
from coaching_service.progress.logs import service as logs
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import descriptions
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import CircuitExercise, ExerciseItem
from coaching_service.training.workouts.reports.blocks import Status
from coaching_service.training.workouts.reports.exercises import add_last_times
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views import results as view_results
from coaching_service.web.views.customer_calendar import days_of_week
from coaching_service.web.views.customer_layout import load_header, review_path
from coaching_service.web.views.messages import is_unread
from coaching_service.web.views.workout.workout_page import CommentForm

# --- The items of a logged session with tables of what was planned and done in each set, and how that differs ---------


def _find_deviations(
    planned: PlannedSet | None,
    logged: CustomerSet | None,
    unit: str,
    *,
    same_exercise: bool = True,
    is_assisted: bool = False,
) -> list[dict[str, Any]]:
    """Return how a set differs from its plan; loads are in `unit`, and help if the exercise `is_assisted`.

    Each has a text and a `kind`: `less` or `more` than planned (less assistance than planned is `more`), `missed`,
    `extra`, or `swapped` for a set of another exercise. Amounts that were not logged are taken as planned; amounts of
    another exercise are not compared.
    """
    if logged is None:
        return [{"kind": "missed", "text": "Not done"}]
    if planned is None:
        return [{"kind": "extra", "text": "Extra set"}]
    plan: Any = planned
    done: Any = logged
    deviations, is_missed = list[dict[str, Any]](), not logged["isCompleted"]
    if is_missed:
        has_amounts = any(done[name] for name in view_results.PLANNED_FIELDS)
        deviations.append({"kind": "missed", "text": "Not completed" if has_amounts else "Not done"})
    if not same_exercise:
        return [*deviations, {"kind": "swapped", "text": "Another exercise"}]
    for name, fields in view_results.PLANNED_FIELDS.items():
        value, given = done[name], [plan[each] for each in fields if plan.get(each) is not None]
        if value is None or not given:
            continue
        high = value if name == "reps" and plan.get("isAmrap") else given[-1]  # one bound alone is both
        if by := min(value - given[0], 0) or max(value - high, 0):
            is_help, amount = is_assisted and name == "load", abs(by)
            unit_of_amount = {"meters": "m", "load": unit}.get(name, "")
            text = descriptions.format_number(amount, unit_of_amount)
            if name in ("reps", "seconds"):
                text = quantity(int(amount), "rep") if name == "reps" else descriptions.format_seconds(amount)
            text += f" {'less' if by < 0 else 'more'}{' assistance' if is_help else ''}"
            deviations.append({"kind": "less" if (by < 0) != is_help else "more", "text": text})
    for label, key in () if is_missed else descriptions.EFFORT_FIELDS:
        value, target = done[key], plan[key]
        if value is not None and target is not None and value != target:
            is_harder = (value > target) == (key == "rpe")  # a higher RPE or a lower RIR is more effort than planned
            text = f"{label} {descriptions.format_number(value)} instead of {descriptions.format_number(target)}"
            deviations.append({"kind": "more" if is_harder else "less", "text": text})
    return deviations


def review_items(block: Block, unit: str) -> list[dict[str, Any]]:
    """Return the items of a client's workout; loads are in `unit`. `lastTime` is shown where the items have it.

    `lines` are the plan or details of an item, `tables` the sets of its exercises, `hasSets`: one of them was logged.
    """
    reviewed = []
    for item, described in zip(block["items"], descriptions.describe_items(block["items"], unit), strict=True):
        tables: list[dict[str, Any]] = []
        if item["type"] == "EXERCISE":
            last = item.get("lastTime") if item.get("swappedFor") is None else None
            sets = "; ".join(view_results.describe_logged_set(each, unit) for each in last["sets"]) if last else ""
            table = {
                "exerciseId": item["exerciseId"],
                "name": item["exercise"]["name"],
                "rows": [_row(str(each.index), each, unit, item) for each in view_results.pair_sets(item)],
                "lastTime": f"{format_date(last['date'])}: {sets}" if last else "",
            }
            tables = [table]
        elif item["type"] == "CIRCUIT":
            # A table of each exercise with its sets by round, and one of the sets whose exercise was removed.
            pairs = sorted(view_results.pair_sets(item), key=lambda each: (each.round, each.index))
            for place, entry in enumerate([*item["circuitExercises"], None]):
                is_single = entry is not None and len(entry["sets"]) == 1
                rows = [
                    _row(f"Round {each.round}" + ("" if is_single else f", set {each.index}"), each, unit, entry)
                    for each in pairs
                    if each.place == place
                ]
                if entry is not None or rows:
                    name = entry["exercise"]["name"] if entry else "Removed exercise"
                    exercise_id = entry["exerciseId"] if entry else None
                    tables.append({"exerciseId": exercise_id, "name": name, "rows": rows, "lastTime": ""})
        undone = "skipped" if item.get("skipped") else "part" if items.is_recorded(item) else "open"
        reviewed.append(
            {
                **described,
                "_id": item["_id"],
                "state": "done" if item["isCompleted"] else undone,
                "lines": [line for line in described["lines"] if line],
                "hasSets": any(row["done"] for table in tables for row in table["rows"]),
                "tables": tables,
                "results": view_results.describe_results(item, unit),
            }
        )
    return reviewed


def _row(
    label: str, pair: view_results.SetPair, unit: str, plan: ExerciseItem | CircuitExercise | None
) -> dict[str, Any]:
    """Return a set of a planned exercise; amounts of an exercise that was done in its place are not compared.

    Nor are those of an exercise that was imported without a plan.
    """
    planned, logged = pair.planned, pair.logged
    was_planned = plan is None or plan.get("exerciseSets") != []
    is_same = logged is None or logged["exerciseId"] in (None, plan and plan["exerciseId"])
    is_assisted = plan is not None and plan["exercise"].get("loadType") == ASSISTANCE
    return {
        **view_results.describe_pair(pair, unit),
        "label": label,
        "deviations": _find_deviations(planned, logged, unit, same_exercise=is_same, is_assisted=is_assisted)
        if was_planned
        else [],
    }


pages = Pages("/app/customers/{customerId}/blocks/{blockId}/review", locks="customer")
_MAX_COMMENTS = 50


@pages.get("", access=coach(CUSTOMERS.VIEW), template="workout/review.html")
async def session_review_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
    """A session as it was planned and done, with its comments."""
    customer, stored, comments = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        workouts.get(ctx, workouts.ClientCalendar(customer_id), block_id),
        conversation.list_messages(ctx, customer_id, {"limit": _MAX_COMMENTS, "after": None, "wblockId": block_id}),
    )
    [block] = await add_last_times(ctx, customer_id, [stored])
    day = str(block["date"])
    records, following, absences = await gather_reads(
        ctx,
        logs.list_records_of(ctx, customer_id, block),
        _find_next(ctx, customer_id, block_id),
        availability.get_absences(ctx, [customer_id], day, day),
    )
    with_media = [item["_id"] for item in block["items"] if item.get("mediaCount")]
    may_answer = CUSTOMERS.EDIT in ctx.caller.permissions
    media = await form_checks.show_of_items(ctx, customer_id, with_media, seen=may_answer) if with_media else {}
    unit = ctx.caller.company.load_unit
    reviewed = review_items(block, unit)
    logged_at = [
        each["loggedAt"]
        for item in block["items"]
        if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT"
        for each in item["customerSets"]
        if "loggedAt" in each
    ]
    completed_at = [item["completedAt"] for item in block["items"] if item["completedAt"] is not None]
    return {
        "customer": customer,
        "block": block,
        "monday": days_of_week(date.fromisoformat(str(block["date"])))[0],
        # It is of a recurring check-in, or has nothing but forms.
        "is_check_in": block.get("checkInId") is not None or {item["type"] for item in block["items"]} == {"FORM"},
        "status": _status_of(block, ctx.caller.today(customer["timezone"]), is_away=day in absences[customer_id]),
        "items": reviewed,
        "media": media,
        "item_options": [(str(item["_id"]), item["title"]) for item in reviewed],
        "volume": workouts.presented_volume(block["items"]),
        "feeling": dict(view_results.FEELINGS).get(block.get("feeling") or 0),
        # When the first and the last set were done (UTC), or else when the last item was completed, if known.
        "times": [min(logged_at), max(logged_at)] if logged_at else [max(completed_at)] if completed_at else [],
        "records": view_results.describe_new_records(records),
        "comments": comments["docs"][::-1],
        "has_earlier_comments": comments["hasMore"],
        "has_unread": any(map(is_unread, comments["docs"])),
        "next": following,
    }


def _status_of(block: Block, today: date, *, is_away: bool) -> Status:
    """Return what became of a session, in the words of the calendar; what the client added is never missed."""
    if block["isRest"]:
        return "rest"
    if block["isCompleted"]:
        return "done"
    if any(map(items.is_recorded, block["items"])):
        return "part"
    if is_away:
        return "away"
    is_missed = block["items"] and block.get("createdBy") is None and str(block["date"]) < str(today)
    return "missed" if is_missed else "planned"


@pages.post("/comments", access=coach(CUSTOMERS.EDIT), on=session_review_page)
async def answer_session(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: CommentForm) -> Redirect:
    """Send a comment on the session to the client, whose comments on it count as read."""
    about: MessageSubjectInput = {"wblockId": block_id, "witemId": form["item"]}
    await conversation.mark_read(ctx, customer_id, block_id=block_id)
    await conversation.create(ctx, customer_id, {"text": form["text"], "about": about})
    await attention.renew(ctx, customer_id)
    return Redirect(f"{review_path(customer_id, block_id)}#comments", "Comment sent.")


@pages.post("/read", access=coach(CUSTOMERS.EDIT), on=session_review_page, idempotent=True)
async def mark_session_comments_read(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> Redirect:
    """Mark the client's comments on the session as read, for the whole company."""
    await conversation.mark_read(ctx, customer_id, block_id=block_id)
    await attention.renew(ctx, customer_id)
    return Redirect(f"{review_path(customer_id, block_id)}#comments", "Marked as read.")


_MESSAGES = 20
# The reasons with something that a coach reads, so that these clients come next.
_REASONS: tuple[ReasonType, ...] = (
    "health_note",
    "unread_message",
    "check_in_to_review",
    "missed_workout",
    "personal_record",
)


async def _find_next(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> dict[str, Any] | None:
    """Return what a coach reviews after a workout of a client, or None.

    Another unread comment of the client on a workout, else the most urgent other client: an unread comment on a workout
    if there is one, or the client's entry of the list of today.
    """
    own, part = await gather_reads(
        ctx,
        _find_commented_block(ctx, customer_id, without=block_id),
        derived_figures.list_attention(ctx, reasons=_REASONS, limit=2),
    )
    if own is not None:
        return {"text": "another comment", "url": review_path(customer_id, own)}
    client = next((each for each in part["docs"] if each["_id"] != customer_id), None)
    if client is None:
        return None
    commented = await _find_commented_block(ctx, client["_id"])
    url = review_path(client["_id"], commented) if commented else f"/app/attention/{client['_id']}"
    return {"text": customers.full_name(client), "url": url}


async def _find_commented_block(
    ctx: Context, customer_id: ObjectId, without: ObjectId | None = None
) -> ObjectId | None:
    """Return the workout of the newest unread comment of a client; `without` one of them."""
    page = await conversation.list_messages(ctx, customer_id, {"limit": _MESSAGES, "after": None})
    for message in page["docs"]:
        about = message["about"]
        if is_unread(message) and about is not None and about["wblockId"] != without:
            return about["wblockId"]
    return None
