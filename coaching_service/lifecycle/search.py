"""Finding clients, and what was written about and by them, by words; and the job that indexes what is stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict, get_args

from coaching_service.core.auth import CUSTOMERS, EXERCISES, FORMS, PROGRAMS, coach
from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Context, Services, gather_reads, in_transaction
from coaching_service.core.database.declared import SearchedType
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.dates import local_date
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import Default, Description
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Text
from coaching_service.library.exercises import service as exercises
from coaching_service.lifecycle.consistency import iterate_batches, list_wrong
from coaching_service.people import searched_texts, team
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer

# --- What is searched for and found -----------------------------------------------------------------------------------


TYPES: tuple[SearchedType, ...] = get_args(SearchedType)
MAX_LENGTH, DEFAULT_RESULTS, MAX_RESULTS = 100, 20, 50
# What a coach needs apart from `customers.view`, to find texts of a type.
_PERMISSIONS: dict[SearchedType, str] = {"answers": FORMS.VIEW, "exercises": EXERCISES.VIEW, "programs": PROGRAMS.VIEW}
_CLIENT_TEXTS: tuple[SearchedType, ...] = ("workouts", "notes", "messages", "answers", "comments")
_PATHS: dict[SearchedType, str] = {
    "customers": "/app/customers/{client}",
    "workouts": "/app/customers/{client}/blocks/{document}",
    "comments": "/app/customers/{client}/blocks/{document}/review",
    "notes": "/app/customers/{client}/notes#note-{document}",
    "messages": "/app/customers/{client}/messages#message-{document}",
    "answers": "/app/customers/{client}/responses#response-{document}",
    "exercises": "/app/exercises/{document}",
    "programs": "/app/programs/{document}",
}


class SearchQuery(TypedDict):
    """What to search for."""

    q: Annotated[
        str,
        Text(max_length=MAX_LENGTH),
        Description(
            "Words, each of which must occur, in any order and without regard to case and accents; the last one may be "
            "the beginning of a word."
        ),
    ]
    types: NotRequired[Annotated[list[SearchedType], Description("Repeatable; what to find. Default: everything.")]]
    customerId: NotRequired[
        Annotated[ObjectId, Description("Only what is about this client: neither exercises nor programs.")]
    ]
    limit: Annotated[
        int,
        QueryInteger(maximum=MAX_RESULTS),
        Default(DEFAULT_RESULTS),
        Description(f"The largest number of results; default {DEFAULT_RESULTS}."),
    ]


class SearchResult(TypedDict):
    """What was found: a client, or something of the library or of a client."""

    type: Annotated[SearchedType, Description("`answers` to forms; `comments` in the log of a workout.")]
    _id: Annotated[
        ObjectId,
        Description("The identifier of the client, workout (of comments too), note, message, form response ..."),
    ]
    customer: Annotated[NamedCustomer | None, Description("The client it is about; null for exercises and programs.")]
    isArchived: Annotated[bool, Description("Whether this client is archived.")]
    title: Annotated[str, Description("The name of the client, workout, form, exercise or program, or what it is.")]
    snippet: Annotated[str, Description("The part of the text where the words occur; empty if there is only a title.")]
    date: Annotated[
        str | None,
        Description("The day of the workout or form, or when it was written or created; null for exercises."),
    ]
    url: Annotated[str, Description("The page of the web application that shows it.")]


class SearchResults(TypedDict):
    """What was found, the best first."""

    docs: list[SearchResult]


routes = Routes("/coach/search", tag="Search")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def search_texts(ctx: Context, query: SearchQuery) -> SearchResults:
    """Search clients, and what was written by and about them.

    Clients come first, then programs, exercises and what has all words in its title, then what is nearest in time. Of
    archived clients too, but only of those whom the caller may see; answers, exercises and programs need the permission
    to view them.
    """
    docs = await find(
        ctx, query["q"], query.get("types") or TYPES, customer_id=query.get("customerId"), limit=query["limit"]
    )
    return {"docs": docs}


# --- Finding ----------------------------------------------------------------------------------------------------------


async def find(
    ctx: Context,
    text: str,
    types: Collection[SearchedType] = TYPES,
    *,
    customer_id: ObjectId | None = None,
    limit: int = DEFAULT_RESULTS,
) -> list[SearchResult]:
    """Return at most `limit` results of `types` with every word of `text`, best first; of one client if it is given.

    Only what the caller may see: clients in scope, and types whose permission they have.
    """
    words = searched_texts.words_of(text)
    allowed = {each for each in types if _PERMISSIONS.get(each, CUSTOMERS.VIEW) in ctx.caller.permissions}
    if words is None:
        return []
    clients = await customers.select_ids_in_scope(ctx, customer_id)
    of_library = allowed & {"exercises", "programs"} if customer_id is None else set()
    *found, listed = await gather_reads(
        ctx,
        searched_texts.find(ctx, words, allowed & {"customers"}, clients, limit),
        searched_texts.find(ctx, words, allowed & {*_CLIENT_TEXTS}, clients, limit),
        searched_texts.find(ctx, words, of_library & {"programs"}, None, limit),
        _find_exercises(ctx, text, words, limit if "exercises" in of_library else 0),
    )
    texts: list[searched_texts.Found] = [each for some in found for each in some]
    client_of = await customers.find_named(ctx, {each.customer_id for each in texts if each.customer_id})
    results: list[SearchResult] = []
    for each in texts:
        client = client_of.get(each.customer_id) if each.customer_id else None
        if client is None and each.customer_id is not None:
            continue  # the client may be being erased
        at = each.text.at
        if isinstance(at, datetime):
            at = str(local_date(at, (client and client["timezone"]) or ctx.caller.company.timezone))
        results.append(
            {
                "type": each.text.type,
                "_id": each.document_id,
                "customer": client and {"_id": client["_id"], "name": client["name"]},
                "isArchived": client is not None and client["isArchived"],
                "title": each.text.title,
                "snippet": searched_texts.snippet_of(each.text.text, words),
                "date": at,
                "url": _url(ctx, each.text.type, each.document_id, each.customer_id),
            }
        )

    def rank(result: SearchResult) -> tuple[int, bool, str]:
        if result["type"] == "customers":
            return 0, result["isArchived"], result["title"].casefold()
        of_library, is_named = result["customer"] is None, words.occur_in(searched_texts.split_words(result["title"]))
        return (1 if is_named else 3) + (not of_library), False, ""

    return sorted([*results, *listed], key=rank)[:limit]


def _url(ctx: Context, kind: SearchedType, document_id: ObjectId, client_id: ObjectId | None = None) -> str:
    return ctx.services.base_url + _PATHS[kind].format(client=client_id, document=document_id)


async def _find_exercises(ctx: Context, text: str, words: searched_texts.Words, limit: int) -> list[SearchResult]:
    """Return the exercises, shared and own, that have every word in a name, an alias, a tag, a muscle or equipment."""
    found: list[SearchResult] = []
    for each in await exercises.suggest_exercises(ctx, text, limit) if limit else ():
        muscles = [muscle["name"] for muscle in each["muscleGroups"]]
        others = ", ".join(filter(None, [*each["aliases"], *each["tags"], each["equipment"], *muscles]))
        if words.occur_in(searched_texts.split_words(f"{each['name']}\n{others}")):
            found.append(
                {
                    "type": "exercises",
                    "_id": each["_id"],
                    "customer": None,
                    "isArchived": False,
                    "title": each["name"],
                    "snippet": searched_texts.snippet_of(others, words),
                    "date": None,
                    "url": _url(ctx, "exercises", each["_id"]),
                }
            )
    return found


# --- Indexing what was stored before there was an index ---------------------------------------------------------------


INDEX = "index_texts"
_CLIENTS = 20
_DOCUMENTS = 100  # in one transaction


async def index_batch(services: Services, job: Job) -> RunAgain | None:
    """Index the texts of the next 20 clients of the job's company, and first those of its library.

    A client of whom it fails gets a job of its own.
    """
    company_id = queue.company_of(job)
    try:
        owner = await team.get_owner(services, company_id)
    except NotFound:  # the company is being erased
        return None
    ctx = Context(services, owner, operation=INDEX, interface="system")
    last, only = job.arguments["last"], job.arguments.get("only")
    ids = [only] if only else await customers.list_ids_after(ctx, last, _CLIENTS)
    if last is None:
        await _index_texts(ctx, None)

    async def index(clients: Sequence[ObjectId]) -> None:
        for customer_id in clients:
            await _index_texts(ctx, customer_id)

    for customer_id, wait in (await for_each_alone(services, "search", company_id, ids, index)).items():
        again = {"last": customer_id, "only": customer_id}
        await queue.enqueue(ctx, INDEX, again, after=wait, about=customer_id)
    return RunAgain(progress={"last": ids[-1]}) if ids and not only else None


async def _index_texts(ctx: Context, customer_id: ObjectId | None) -> None:
    """Index the texts of a client; None: of the company itself."""
    for collection, _ in searched_texts.searched_collections().values():
        if (collection.client_field is None) is not (customer_id is None):
            continue
        where = {collection.client_field: customer_id} if collection.client_field else {}
        index = collection.by_client if collection.client_field else collection.by_company
        ids = [each["_id"] for each in await collection.find(ctx, where, fields=("_id",), hint=index)]
        await _renew_entries(ctx, collection, ids)


async def _renew_entries(ctx: Context, collection: Documents[Any], ids: Sequence[ObjectId]) -> None:
    for start in range(0, len(ids), _DOCUMENTS):
        some = ids[start : start + _DOCUMENTS]
        await in_transaction(ctx, partial(searched_texts.renew_entries, collection=collection, ids=some))


async def _find_unindexed(services: Services) -> AsyncIterator[ObjectId]:
    """Yield the documents whose texts are not found by all of their words, or by others."""
    for name, (collection, _) in searched_texts.searched_collections().items():

        async def find_wrong(
            each: Services, batch: Sequence[Document], session: Any, collection: Any = collection
        ) -> list[Document]:
            of_entry = {key: document for document in batch for key in searched_texts.entries_of(collection, document)}
            stored = await searched_texts.read_words(each, of_entry, session)
            wrong = {
                document["_id"]: document
                for document in batch
                for key, entry in searched_texts.entries_of(collection, document).items()
                if stored.get(key) != {*entry["words"]}
            }
            return list(wrong.values())

        fields = dict.fromkeys((*searched_texts.fields_of(collection), "companyId"), 1)
        async for batch in iterate_batches(services, name, fields):
            for document_id in await list_wrong(services, name, batch, find_wrong):
                yield document_id


async def _index_again(services: Services) -> None:
    for name, (collection, _) in searched_texts.searched_collections().items():
        async for batch in iterate_batches(services, name, {"companyId": 1}):
            companies: dict[ObjectId, list[ObjectId]] = {}
            for document in batch:
                companies.setdefault(document["companyId"], []).append(document["_id"])
            for company_id, ids in companies.items():
                with suppress(NotFound):
                    owner = await team.get_owner(services, company_id)
                    await _renew_entries(Context(services, owner), collection, ids)


CHECKS = (
    check_of(
        "search",
        "Texts that are found by their words",
        _find_unindexed,
        "Documents whose texts are not found by their words",
        "Run doctor --repair, which indexes them again",
        _index_again,
        counts=True,
    ),
)
