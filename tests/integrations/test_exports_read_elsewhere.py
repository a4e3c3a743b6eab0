"""Exports as other programs read and pack them: readers of streams, spreadsheets, and archives with a folder."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from tests.conftest import NewCompany
from tests.core.test_uploads import PDF, add, form, picture
from tests.support.client import CoachClient
from tests.support.training import block_with, exercise_of, log
from tests.support.transfer import Entries, export, import_file, make_zip, read_zip
from tests.support.zip_stream import read_forwards


@pytest.fixture
async def ana(coach: CoachClient) -> dict[str, Any]:
    """A client with a photo, whose name is not ASCII."""
    customer = await coach.create_customer("José")
    (await add(coach, f"/coach/customers/{customer['_id']}", picture())).ok(201)
    return customer


async def test_exports_are_read_forwards(coach: CoachClient, ana: dict[str, Any]) -> None:
    client = await coach.as_client(ana)
    for sender, path in (
        (coach, "/coach/export"),
        (coach, f"/coach/customers/{ana['_id']}/export"),
        (client, "/customer/export"),
    ):
        content = (await sender.get(path)).raw
        entries = read_forwards(content)
        assert entries == read_zip(content), path
        assert any(name.startswith("files/") for name in entries), path
        assert "José" in "".join(each.decode("utf-8", "replace") for each in entries.values()), path


async def test_csv_begins_with_a_byte_order_mark(coach: CoachClient, ana: dict[str, Any]) -> None:
    """Without it, Excel shows JosÃ© for José."""
    empty = (await coach.get("/coach/export", format="csv", kind="workouts")).raw
    assert empty.startswith(b"\xef\xbb\xbfclient_id,")
    squat = await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat))
    (await log(coach, block, block["items"][0], customerSets=[{"reps": 5, "load": 60}])).ok()
    content = (await coach.get("/coach/export", format="csv", kind="workouts")).raw
    assert content.count(b"\xef\xbb\xbf") == 1
    assert "José" in content.decode("utf-8-sig").splitlines()[1]


@pytest.fixture
async def entries(coach: CoachClient, ana: dict[str, Any]) -> Entries:
    """The export of the company."""
    return await export(coach)


async def test_archive_that_was_packed_again_with_its_folder_is_imported(
    new_company: NewCompany, entries: Entries
) -> None:
    target, folder = await new_company(), "Mi empresa 2026/"
    others = {f"__MACOSX/{folder}._export.json": b"\0", f"{folder}.DS_Store": b"\0"}
    packed = {folder: b"", **{f"{folder}{name}": content for name, content in entries.items()}, **others}
    job = await import_file(target, make_zip(packed))
    assert (job["status"], job["result"]["failed"]) == ("done", 0)
    assert sorted(error["entry"] for error in job["errors"]) == sorted(name.removeprefix(folder) for name in others)
    assert await target.names() == ["José"]
    assert job["result"]["imported"]["progressPhotos"] == 1


async def test_names_are_read_as_macos_packs_them(
    coach: CoachClient, ana: dict[str, Any], new_company: NewCompany
) -> None:
    """UTF-8 without the flag that says so, with letters and accents apart."""
    path = f"/coach/customers/{ana['_id']}/nutrition-plans"
    (await coach.send("POST", path, data=form(PDF, "file", name="plan de José.pdf"))).ok(201)
    entries = await export(coach)
    assert any("José" in name for name in entries)
    names = [unicodedata.normalize("NFD", f"Mi compañía/{name}").encode() for name in entries]
    placeholders = ["x" * (len(name) - 4) + f"{number:04}" for number, name in enumerate(names)]
    content = make_zip(dict(zip(placeholders, entries.values(), strict=True)))
    for placeholder, name in zip(placeholders, names, strict=True):
        content = content.replace(placeholder.encode(), name)
    target = await new_company()
    job = await import_file(target, content)
    assert (job["status"], job["errors"], job["result"]["imported"]["planVersions"]) == ("done", [], 1)


async def test_archive_with_several_folders_or_changed_bytes_is_refused(
    new_company: NewCompany, entries: Entries
) -> None:
    target = await new_company()
    two = {f"{folder}/{name}": content for folder in ("a", "b") for name, content in entries.items()}
    deep = {f"a/b/{name}": content for name, content in entries.items()}
    for packed in (two, deep):
        job = await import_file(target, make_zip(packed))
        assert (job["status"], job["errors"][-1]["entry"]) == ("failed", "export.json")
    changed = {f"a/{name}": content + b"\n" * (name == "account.json") for name, content in entries.items()}
    job = await import_file(target, make_zip(changed))
    assert (job["status"], job["errors"][-1]["entry"]) == ("failed", "a/account.json")
    assert await target.names() == []
