"""Export, import and export again: every identifier and every file arrives where it was."""

from __future__ import annotations

import io
import json
import re

import pytest

from coaching_service.core.media_worker import rewrite_pdf, rewrite_picture
from coaching_service.integrations.company_export import portable_collections
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises import service as exercises
from coaching_service.library.metric_sets import UNITS
from tests.conftest import NewCompany
from tests.support.archive_graph import find_bijection, graph_of, rename, swap_identifiers
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.portable_company import hire_colleagues, make_company
from tests.support.sampled import MORE, some
from tests.support.training import Json
from tests.support.transfer import Entries, export, import_file, make_zip, records, with_records

_TIME = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z")
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")


def as_imported(content: bytes) -> bytes:
    """What an import makes of a file: pictures are encoded again, and PDF files written again."""
    if content.startswith(b"%PDF-"):
        pdf = io.BytesIO()
        rewrite_pdf(io.BytesIO(content), pdf, cpu_seconds=60)
        return pdf.getvalue()
    if not content.startswith(_PICTURES):
        return content
    image = io.BytesIO()
    formats = ("PNG", "JPEG", "GIF", "WEBP")
    rewrite_picture(io.BytesIO(content), image, io.BytesIO(), formats=formats, pixels=10_000_000, animated=True)
    return image.getvalue()


async def names_of_shared(coach: CoachClient) -> dict[str, str]:
    """Names of what is the same in all companies."""
    shared = (*exercise_models.MUSCLE_NAMES, *UNITS, *await exercises.list_shared_ids(coach.ctx))
    return {str(identifier): f"shared {identifier}" for identifier in shared}


def with_coaches_of(entries: Entries, other: Entries) -> Entries:
    """The export as if its coaches had the e-mail addresses that coaches of the same names have in another one."""
    emails = {coach["name"]: coach["email"] for coach in coaches(other)}
    lines = [json.dumps({**coach, "email": emails[coach["name"]]}) for coach in coaches(entries)]
    return {**entries, "coaches.jsonl": "\n".join(lines).encode()}


def with_owner_of(entries: Entries, other: Entries) -> Entries:
    """The export as if its owner had the e-mail address of the owner of another one."""
    owner, *others = coaches(entries)
    changed = [{**owner, "email": coaches(other)[0]["email"]}, *others]
    return {**entries, "coaches.jsonl": "\n".join(map(json.dumps, changed)).encode()}


def coaches(entries: Entries) -> list[Json]:
    """The coaches of an export."""
    return [json.loads(line) for line in entries["coaches.jsonl"].splitlines()]


async def test_export_of_an_import_is_the_same_graph(coach: CoachClient, new_company: NewCompany) -> None:
    await make_company(coach)
    await renew_figures(coach.ctx)  # or it may happen between the exports
    first = await export(coach)
    assert {name for name, *_ in portable_collections() if len(records(first, name)) < 2} == set()
    target = await new_company()
    await hire_colleagues(target)
    shared = await names_of_shared(coach)
    first = with_coaches_of(first, await export(target))

    job = await import_file(target, make_zip(first))
    second = await export(target)

    assert (job["status"], job["errors"], job["result"]["failed"]) == ("done", [], 0)
    bijection = find_bijection(graph_of(first, shared, as_imported), graph_of(second, shared))
    assert len(bijection) > 300
    assert {each for each, image in bijection.items() if each == image} <= shared.keys()
    for name, *_ in portable_collections():
        mapped = [rename(record, bijection) for record in records(first, name)]
        assert ids(mapped) == ids(records(second, name)), f"{name} in the same order"
    assert_swaps_are_found(first, second, shared)
    await read_everything(target)


if MORE > 1:  # the company above has records of all kinds

    async def test_demo_company_is_the_same_graph_after_an_import(
        services_with_demo: CoachClient, new_company: NewCompany
    ) -> None:
        first = await export(services_with_demo)
        target = await new_company()
        first = with_owner_of(first, await export(target))

        job = await import_file(target, make_zip(first))
        assert (job["status"], job["result"]["failed"]) == ("done", 0)
        assert [error["entry"] for error in job["errors"]] == ["coaches.jsonl:2"], "an employee whom the target lacks"
        second = await export(target)

        owner, absent = coaches(first)
        expected = {**prepared(first, absent["_id"]), "coaches.jsonl": json.dumps(owner).encode()}
        shared = await names_of_shared(target)
        find_bijection(graph_of(expected, shared, as_imported), graph_of(prepared(second), shared))
        assert job["done"] == job["total"] == sum(job["result"]["imported"].values())


def prepared(entries: Entries, absent_coach: str | None = None) -> Entries:
    """The export with clients whose trainer is not `absent_coach`, without the figure that a job renews."""
    clients = records(entries, "customers")
    for client in clients:
        data = client["customerRoleData"]
        data["lastTrainedDate"] = None
        data["assignedTo"] = None if data["assignedTo"] == absent_coach else data["assignedTo"]
    return with_records(entries, "customers", *clients)


def ids(documents: list[Json]) -> list[str]:
    return [document["_id"] for document in documents]


def assert_swaps_are_found(first: Entries, second: Entries, shared: dict[str, str]) -> None:
    """Exchanging two identifiers of any field (of four fields, but for the proofs) is noticed: nothing is overlooked.

    With one time everywhere: records that are created in one request may have the same time, or not.
    """
    first, second = at_one_time(first), at_one_time(second)
    sent = graph_of(first, shared, as_imported)
    swaps = list(swap_identifiers(second))
    assert len({path for path, _ in swaps}) > 60
    for path, changed in some(swaps, 4):
        with pytest.raises(AssertionError, match="no equal"):
            find_bijection(sent, graph_of(changed, shared))
            raise RuntimeError(path)


def at_one_time(entries: Entries) -> Entries:
    """An export with one time in place of all others."""
    return {name: _TIME.sub(b"2026-01-01T00:00:00.000Z", content) for name, content in entries.items()}


async def read_everything(coach: CoachClient) -> None:
    """Everything that was imported can be read over REST."""
    (customer, *_) = (await coach.customers())["docs"]
    client = f"/coach/customers/{customer['_id']}"
    assert customer["profilePhotoUrl"]
    assert await coach.calendar(customer)
    for path in ("notes", "metrics-sets", "personal-records", "messages", "training-maxes", "programs"):
        assert (await coach.get(f"{client}/{path}")).ok(), path
    for path in ("progress-photos", "plan-versions"):
        assert (await coach.get(f"{client}/{path}", pageSize=10, pageNum=1)).ok()["docs"], path
    for path in ("/coach/programs?archived=false", "/exercises?"):
        assert (await coach.get(f"{path}&pageSize=10&pageNum=1")).ok()["docs"], path
    for path in ("/coach/forms", "/coach/metrics-sets", "/coach/workout-templates", "/coach/conversations"):
        assert (await coach.get(path)).ok(), path
    (photo, *_) = (await coach.get(f"{client}/progress-photos", pageSize=10, pageNum=1)).ok()["docs"]
    assert photo
