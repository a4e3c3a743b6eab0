"""What an import of history decides before it stores anything: questions, names of exercises, and clients."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from marshmallow import ValidationError

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation import Email
from coaching_service.integrations.history_files.columns import ask_for_field
from coaching_service.integrations.history_files.models import Question
from coaching_service.integrations.history_files.rosters import split_name
from coaching_service.integrations.history_files.survey import FileClient, Survey
from coaching_service.integrations.history_import import answers as stored_answers
from coaching_service.integrations.history_import.models import StoredAnswers
from coaching_service.library.imported_names import service as imported_names
from coaching_service.library.imported_names.models import CREATE, SKIP, NameAnswer, ResolvedNames
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.full_names import distinct_names, full_name_key
from coaching_service.people.customers.models import CustomerIdentity, CustomerUpsert

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


async def decide(ctx: Context, found: Survey, answers: StoredAnswers, *, is_own: bool) -> Decisions:
    """Decide about a file with what was found in it; `is_own`: a client imports the own history.

    Raises NotFound for an answer with an unknown identifier.
    """
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
        known = await _load_clients(ctx, only=customer_id if is_own else None)
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
        return {"": None}, [_ASK_FOR_CLIENT]
    known, decisions, unknown = await _load_clients(ctx), dict[str, NameAnswer | None](), list[Question]()
    for client in named:
        answer = sent.get(normalize(client.label)) or known.find(client)
        if answer is None:
            unknown.append(known.ask(client))
        else:
            decisions[client.label] = answer
    return decisions, unknown


# --- which clients of the company the names in a file stand for ------------------------------------------------------


_NEAREST = 3
_EMAIL = Email()


class _KnownClients:
    """The clients of the company, by everything that a file may name them with."""

    def __init__(self, clients: Sequence[CustomerIdentity]) -> None:
        self._by_key: defaultdict[str, set[ObjectId]] = defaultdict(set)
        self._labels = distinct_names(clients)
        self._by_identifier: defaultdict[str, set[ObjectId]] = defaultdict(set)
        self._by_name: defaultdict[str, list[ObjectId]] = defaultdict(list)
        for client in clients:
            full_name = customers.full_name(client)
            self._by_name[full_name_key(client)].append(client["_id"])
            surname_first = f"{client['surname'] or ''}, {client['name']}"
            identifiers = (client["email"], client.get("externalId"), str(client["_id"]))
            for text in filter(None, identifiers):
                self._by_identifier[normalize(text)].add(client["_id"])
            for text in filter(None, (full_name, surname_first, *identifiers)):
                self._by_key[normalize(text)].add(client["_id"])

    def candidates(self, client: FileClient) -> set[ObjectId]:
        """Return the known clients that a client in a file may be: by identifier, else by a name that no other has.

        An identifier may be an address, and the name may also be both.
        """
        if known := self._by_identifier.get(normalize(client.id)):
            return known
        return self._by_key.get(normalize(client.name), set()) if client.is_alone else set()

    def find(self, client: FileClient) -> ObjectId | None:
        """Return the known client that a client in a file is; None without one, or with several."""
        found = self.candidates(client)
        return next(iter(found)) if len(found) == 1 else None

    def ask(self, client: FileClient) -> Question:
        """Return the question who a client in the file is; its options are all clients with the nearest names."""
        names = difflib.get_close_matches(normalize(client.name), self._by_name, n=_NEAREST, cutoff=0.5)
        near = {each: self._labels[each] for name in names for each in self._by_name[name]}
        return {
            "code": "CUSTOMER",
            "message": f"Which client is {client.label}?",
            "options": [*map(str, near), CREATE, SKIP],
            "name": client.label,
            "labels": [*near.values(), "Create a new client", "Leave out"],
        }


_ASK_FOR_CLIENT: Question = {
    "code": "CUSTOMER",
    "message": "The file does not name its client: whose history is it? Send `customerId`.",
    "options": [],
}


async def _load_clients(ctx: Context, *, only: ObjectId | None = None) -> _KnownClients:
    """Return the clients of the company, or one of them."""
    return _KnownClients([each for each in await customers.list_identities(ctx) if only in (None, each["_id"])])


async def create_clients(ctx: Context, clients: Sequence[FileClient]) -> dict[str, ObjectId]:
    """Create these clients, without an invitation, and return their identifiers by label."""
    created: dict[str, ObjectId] = {}
    left = list(clients)
    while left:  # a batch refuses clients of the same name
        by_name = {normalize(client.name): client for client in reversed(left)}
        saved = await batch.save_many(ctx, [_new_client(client) for client in by_name.values()])
        for client, result in zip(by_name.values(), saved["results"], strict=True):
            created[client.label] = result["_id"]
        left = [client for client in left if client.label not in created]
    return created


def _new_client(client: FileClient) -> CustomerUpsert:
    name, surname = split_name(client.name)
    new: CustomerUpsert = {"name": name, "surname": surname or None, "sendInvitation": False}
    with suppress(ValidationError):  # another identifier
        new["email"] = _EMAIL.deserialize(client.id)
    return new
