"""What an import of history decides before it stores anything: questions, names of exercises, and clients."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.columns import ask_for_field
from coaching_service.integrations.history_files.models import Question
from coaching_service.integrations.history_files.survey import FileClient, Survey, survey
from coaching_service.integrations.history_import import _clients
from coaching_service.integrations.history_import import answers as stored_answers
from coaching_service.integrations.history_import.models import StoredAnswers
from coaching_service.library.imported_names import service as imported_names
from coaching_service.library.imported_names.models import CREATE, NameAnswer, ResolvedNames
from coaching_service.people.customers import service as customers

_NAME_LABELS = {"customer": "Names of clients", "workout": "Names of workouts"}


@dataclass(frozen=True)
class Decisions:
    """What is decided about a file.

    `customers` are what the clients in the file stand for, by label; None: another client than the import is for.
    """

    survey: Survey
    names: ResolvedNames
    customers: Mapping[str, NameAnswer | None]
    questions: list[Question]

    @property
    def customer_questions(self) -> list[Question]:
        """The questions about clients."""
        return [each for each in self.questions if each["code"] == "CUSTOMER"]

    @property
    def new_customers(self) -> list[FileClient]:
        """The clients that have to be created."""
        return [self.survey.clients[label] for label, decision in self.customers.items() if decision == CREATE]


async def decide(ctx: Context, file: IO[bytes], answers: StoredAnswers, *, is_own: bool) -> Decisions:
    """Read the whole file and decide; `is_own`: a client imports the own history.

    Raises UnreadableTable, and NotFound for an answer with an unknown identifier."""
    found = await asyncio.to_thread(survey, file, stored_answers.reading_answers(answers))
    names = await imported_names.resolve_names(ctx, found.exercises, stored_answers.by_name(answers["names"]))
    decided, questions = await _decide_customers(ctx, found, answers, is_own=is_own)
    return Decisions(found, names, decided, [*found.questions, *questions])


async def _decide_customers(
    ctx: Context, found: Survey, answers: StoredAnswers, *, is_own: bool
) -> tuple[Mapping[str, NameAnswer | None], list[Question]]:
    named = [client for client in found.clients.values() if client.name]
    sent = {normalize(name): answer for name, answer in stored_answers.by_name(answers["customers"]).items()}
    for decision in sent.values():
        if isinstance(decision, ObjectId):
            await customers.get_visible(ctx, decision)
    if (customer_id := answers["customerId"]) is not None:
        await customers.get_visible(ctx, customer_id)
        known = await _clients.load(ctx, only=customer_id if is_own else None)
        meant: dict[str, ObjectId | None] = {}
        is_anyone_known = len(named) < 2
        for client in named:
            answer = sent.get(normalize(client.label))
            candidates = known.candidates(client) if answer is None else {answer}
            is_anyone_known |= bool(candidates)
            # The only one who is named may have another name here, but not that of another client.
            is_meant = customer_id in candidates or (not candidates and len(named) == 1 and not is_own)
            meant[client.label] = customer_id if is_meant else None
        is_unclear = found.name_heading is not None and not is_anyone_known
        asked = [ask_for_field(found.name_heading or "", _NAME_LABELS)] if is_unclear else []
        return {"": customer_id} | meant, asked
    if list(found.customers) == [""]:
        return {"": None}, [_clients.ASK_FOR_CLIENT]
    decisions, questions = _clients.decide(named, await _clients.load(ctx), sent)
    return dict(decisions), questions
