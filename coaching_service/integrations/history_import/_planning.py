"""What an import of history decides before it stores anything: questions, names of exercises, and clients."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.history_files.models import Question
from coaching_service.integrations.history_files.survey import Survey, survey
from coaching_service.integrations.history_import import _clients
from coaching_service.integrations.history_import import answers as stored_answers
from coaching_service.integrations.history_import.models import StoredAnswers
from coaching_service.library.imported_names import service as imported_names
from coaching_service.library.imported_names.models import CREATE, NameAnswer, ResolvedNames
from coaching_service.people.customers import service as customers


@dataclass(frozen=True)
class Decisions:
    """What is decided about a file.

    `customers` are what the clients in the file stand for; None: another client than the import is for.
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
    def new_customers(self) -> list[str]:
        """The names of the clients that have to be created."""
        return [name for name, decision in self.customers.items() if decision == CREATE]


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
    names = list(found.customers)
    sent = stored_answers.by_name(answers["customers"])
    for decision in sent.values():
        if isinstance(decision, ObjectId):
            await customers.get_visible(ctx, decision)
    if (customer_id := answers["customerId"]) is not None:
        await customers.get_visible(ctx, customer_id)
        named = [name for name in names if name]
        if not named or (len(named) == 1 and not is_own):
            return dict.fromkeys(names, customer_id), []
        known = await _clients.load(ctx, only=customer_id if is_own else None)
        is_meant = {name: sent.get(name, known.find(name)) == customer_id for name in named}
        return {"": customer_id} | {name: customer_id if meant else None for name, meant in is_meant.items()}, []
    if names == [""]:
        return {"": None}, [_clients.ASK_FOR_CLIENT]
    decisions, questions = _clients.decide([name for name in names if name], await _clients.load(ctx), sent)
    return dict(decisions), questions
