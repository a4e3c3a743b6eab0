"""Which clients of the company the names in a file stand for."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from marshmallow import ValidationError

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation import Email
from coaching_service.integrations.history_files.models import Question
from coaching_service.integrations.history_files.rosters import split_name
from coaching_service.integrations.history_files.survey import FileClient
from coaching_service.library.imported_names.models import CREATE, SKIP, NameAnswer
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.full_names import distinct_names, full_name_key
from coaching_service.people.customers.models import CustomerIdentity, NewCustomer

_NEAREST = 3
_EMAIL = Email()


class KnownClients:
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

    def nearest(self, name: str) -> dict[ObjectId, str]:
        """Return all clients with the nearest names, each with a text that tells it apart."""
        near = difflib.get_close_matches(normalize(name), self._by_name, n=_NEAREST, cutoff=0.5)
        return {each: self._labels[each] for key in near for each in self._by_name[key]}


def ask(client: FileClient, known: KnownClients) -> Question:
    """Return the question who a client in the file is."""
    near = known.nearest(client.name)
    return {
        "code": "CUSTOMER",
        "message": f"Which client is {client.label}?",
        "options": [*map(str, near), CREATE, SKIP],
        "name": client.label,
        "labels": [*near.values(), "Create a new client", "Leave out"],
    }


ASK_FOR_CLIENT: Question = {
    "code": "CUSTOMER",
    "message": "The file does not name its client: whose history is it? Send `customerId`.",
    "options": [],
}


async def load(ctx: Context, *, only: ObjectId | None = None) -> KnownClients:
    """Return the clients of the company, or one of them."""
    return KnownClients([each for each in await customers.list_identities(ctx) if only in (None, each["_id"])])


def decide(
    clients: Collection[FileClient], known: KnownClients, answers: Mapping[str, NameAnswer]
) -> tuple[dict[str, NameAnswer], list[Question]]:
    """Return what the clients in a file stand for, and the questions about those who match none.

    The answers are by normalized label.
    """
    decisions: dict[str, NameAnswer] = {}
    questions: list[Question] = []
    for client in clients:
        decision = answers.get(normalize(client.label)) or known.find(client)
        if decision is None:
            questions.append(ask(client, known))
        else:
            decisions[client.label] = decision
    return decisions, questions


async def create(ctx: Context, clients: Sequence[FileClient]) -> dict[str, ObjectId]:
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


def _new_client(client: FileClient) -> NewCustomer:
    name, surname = split_name(client.name)
    new: NewCustomer = {"name": name, "surname": surname or None, "sendInvitation": False}
    with suppress(ValidationError):  # another identifier
        new["email"] = _EMAIL.deserialize(client.id)
    return new
