"""The steps of migrations, with data as the previous release stored it; how they run: test_migration_runs.py."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.installation import migrations
from coaching_service.installation.migrations import migrate
from coaching_service.lifecycle import search
from coaching_service.settings import Settings
from tests.support.release_0_1_0 import CREATED

NAMES = [step.name for step in migrations.STEPS]
SQUAT, PRESS = ObjectId(), ObjectId()


def block_of_release_0_1_0(*items: dict[str, Any]) -> dict[str, Any]:
    """A workout block with completed work as release 0.1.0 stored it."""
    totals = {"sets": 0, "reps": 0, "volumeLoad": 0, "exercises": []}
    return {"_id": ObjectId(), "companyId": ObjectId(), "items": list(items), "done": totals, "version": 1}


def item_of_release_0_1_0(item_type: str, *trained: ObjectId) -> dict[str, Any]:
    """A completed item whose working sets are of the exercises `trained`."""
    return {
        "_id": ObjectId(),
        "type": item_type,
        "isCompleted": True,
        "doneExerciseIds": [SQUAT] if item_type == "EXERCISE" else [],
        "tally": {"sets": len(trained), "exercises": [{"exerciseId": each, "sets": 1} for each in trained]},
    }


async def test_steps_bring_old_documents_to_the_current_shape(old_database: Services, settings: Settings) -> None:
    db = old_database.db
    assert await migrate(db, old_database.vault) == NAMES

    customers = await db["customers"].find({}).to_list(None)
    assert [customer["customerRoleData"]["lastTrainedDate"] for customer in customers] == [None, None]
    assert [(customer["version"], customer["updatedAt"]) for customer in customers] == [(3, CREATED)] * 2

    [job] = await db["jobs"].find({"kind": "send_mail"}).to_list(None)
    assert set(job["arguments"]) == {"sealed", "tries"}
    assert await worker.run_due(old_database, {"send_mail": features.STEPS["send_mail"]}) == 1
    written = (settings.data_dir / "mail" / f"{job['_id']}.eml").read_text()
    assert "To: ana@example.com" in written
    assert "token=3Dsecret-token" in written or "token=secret-token" in written


async def test_sessions_follow_the_rule_of_working_sets(old_database: Services) -> None:
    db = old_database.db
    blocks = {
        "warm-up only": block_of_release_0_1_0(item_of_release_0_1_0("EXERCISE")),
        "working set": block_of_release_0_1_0(item_of_release_0_1_0("EXERCISE", SQUAT)),
        "circuit": block_of_release_0_1_0(item_of_release_0_1_0("CIRCUIT", PRESS)),
        "task": block_of_release_0_1_0(item_of_release_0_1_0("TASK"), item_of_release_0_1_0("EXERCISE")),
    }
    await db["workoutBlocks"].insert_many(list(blocks.values()))

    await migrate(db, old_database.vault)

    stored = {name: await db["workoutBlocks"].find_one({"_id": block["_id"]}) for name, block in blocks.items()}
    assert [name for name, block in stored.items() if block and block["done"]] == ["working set", "circuit", "task"]
    done_ids = {name: [item["doneExerciseIds"] for item in block["items"]] for name, block in stored.items() if block}
    assert done_ids == {"warm-up only": [[]], "working set": [[SQUAT]], "circuit": [[PRESS]], "task": [[], []]}
    due = await db["customers"].count_documents({"figuresUntil": {"$lte": CREATED}})
    assert due == 2, "the figures of every client are computed again"


async def test_companies_get_the_settings_of_attention_and_their_clients_are_due(old_database: Services) -> None:
    """Contract 11: the settings have defaults; why clients need attention is computed by the renewal of figures."""
    db = old_database.db
    computed = {"score": 0, "reasons": [], "dismissed": []}
    own = {"inactiveDays": 10, "complianceBelow": 50, "horizonDays": 1}
    await db["companies"].insert_many([{"_id": 1, "companyId": 1}, {"_id": 2, "companyId": 2, "attention": own}])
    await db["customers"].update_many({}, {"$set": {"figuresUntil": CREATED}})
    await db["customers"].update_one({"name": "Bo"}, {"$set": {"attention": computed, "figuresUntil": CREATED}})

    await migrations.attention(db, old_database.vault)

    companies = await db["companies"].find({}).sort("_id", 1).to_list(None)
    assert [each["attention"]["inactiveDays"] for each in companies] == [7, 10]
    due = await db["customers"].find({"figuresUntil": {"$lt": CREATED}}).to_list(None)
    assert [customer["name"] for customer in due] == ["Ana"]


_OF_COMPANY = {"actsAs": "company", "permissions": ["forms.view"], "customersScope": "all"}
ADDED = [  # the collection, what it has, and what the step makes of it
    # Contract 17 and 20: clients may import, move and add workouts, and no company requires a second factor, unless the
    # owner says otherwise.
    (
        "companies",
        [{}, {"clientsMayImport": False, "clientsMayMove": False, "requireSecondFactor": True}],
        [
            {"clientsMayImport": each, "clientsMayMove": each, "clientsMayAdd": True, "requireSecondFactor": not each}
            for each in (True, False)
        ],
    ),
    # Contract 18: keys made before are of a coach and may contact people; they do not confirm in the chat.
    (
        "apiKeys",
        [
            {"restrictions": {"readOnly": False}},
            {"restrictions": {"outreach": False, "confirmInChat": True}, **_OF_COMPANY},
        ],
        [
            {
                "restrictions": {"readOnly": False, "outreach": True, "confirmInChat": False},
                "actsAs": "coach",
                "permissions": None,
                "customersScope": None,
            },
            {"restrictions": {"outreach": False, "confirmInChat": True}, **_OF_COMPANY},
        ],
    ),
    ("assistantGrants", [{"code": {"hash": "a"}}], [{"confirmInChat": False}]),
    (
        "webhooks",
        [{"slot": 0}, {"slot": 1, "allCompanies": True}],
        [{"slot": 0, "allCompanies": False}, {"slot": 1, "allCompanies": True}],
    ),
]


@pytest.mark.parametrize(("collection", "stored", "completed"), ADDED)
async def test_settings_are_added_where_they_are_missing(
    old_database: Services, collection: str, stored: list[dict[str, Any]], completed: list[dict[str, Any]]
) -> None:
    documents, other = old_database.db[collection], {"companyId": 0, "hash": 0, "code": 0}
    await documents.insert_many([{"_id": n, "companyId": n, "hash": f"{n}", **each} for n, each in enumerate(stored)])

    await migrations.settings(old_database.db, old_database.vault)

    found = await documents.find({}, other).sort("_id", 1).to_list(None)
    assert found == [{"_id": number, **each} for number, each in enumerate(completed)]


async def test_the_words_of_texts_are_indexed_by_a_job(old_database: Services) -> None:
    """Once for each company, however often the step is repeated; the job is of a kind that workers know."""
    db, companies = old_database.db, [ObjectId(), ObjectId()]
    await db["companies"].insert_many([{"_id": each, "companyId": each} for each in companies])
    for _ in range(2):
        await migrations.search_texts(db, old_database.vault)
    queued = await db["jobs"].find({"kind": search.INDEX}).to_list(None)
    assert {(each["companyId"], each["arguments"]["last"]) for each in queued} == {(each, None) for each in companies}
    assert len(queued) == 2
    assert search.INDEX in features.STEPS


async def test_forms_without_an_answer_are_marked(old_database: Services) -> None:
    """Contract 11: the pending forms of all clients are found by an index."""
    blocks = old_database.db["workoutBlocks"]
    items = [
        {"_id": ObjectId(), "type": item_type, "isCompleted": is_completed}
        for item_type, is_completed in (("FORM", False), ("FORM", True), ("TASK", False))
    ]
    block = {"_id": ObjectId(), "companyId": ObjectId(), "items": items, "done": None, "version": 1}
    await blocks.insert_one(block)

    await migrate(old_database.db, old_database.vault)

    stored = await blocks.find_one({"_id": block["_id"]})
    assert stored is not None
    assert [item.get("isPendingForm") for item in stored["items"]] == [True, None, None]
    assert stored["version"] == 1


async def test_media_of_exercises_get_identifiers_and_thumbnails(old_database: Services) -> None:
    """Release 0.1.0 stored media without `_id` and `thumbnailUrl`, and the suffixes of exercises."""
    exercises = old_database.db["exercises"]
    media = [
        {"type": kind, "url": f"https://example.com/{kind}", "source": None, "key": None} for kind in ("image", "video")
    ]
    exercise = {"_id": ObjectId(), "companyId": ObjectId(), "name": "Sled Push", "media": media, "suf": ["push"]}
    await exercises.insert_one(exercise)

    await migrate(old_database.db, old_database.vault)

    stored = await exercises.find_one({"_id": exercise["_id"]})
    assert stored is not None
    assert "suf" not in stored
    assert [{name: each[name] for name in media[0]} for each in stored["media"]] == media
    assert [each["thumbnailUrl"] for each in stored["media"]] == [None, None]
    assert len({each["_id"] for each in stored["media"]}) == 2


async def test_photos_get_the_content_type_of_their_file(old_database: Services) -> None:
    db = old_database.db
    files = {side: ObjectId() for side in ("front", "back")}
    types = {"front": "image/png", "back": "image/webp"}
    await db["fs.files"].insert_many([{"_id": files[side], "contentType": types[side]} for side in files])
    sides = {side: {"fileId": files[side], "thumbnailId": None} for side in files}
    photos = {"_id": ObjectId(), "companyId": ObjectId(), "date": "2026-03-02", "sides": sides, "version": 2}
    await db["progressPhotos"].insert_many([photos, {"_id": ObjectId(), "date": "2026-03-03", "version": 0}])

    await migrate(db, old_database.vault)

    stored = await db["progressPhotos"].find_one({"_id": photos["_id"]})
    assert stored is not None
    assert {side: photo["contentType"] for side, photo in stored["sides"].items()} == types
    assert stored["version"] == 2


async def test_sessions_name_their_application(old_database: Services) -> None:
    db = old_database.db
    await db["sessions"].insert_many(
        [{"_id": 1, "access": {"hash": "a"}, "door": "web"}, {"_id": 2, "access": {"hash": "b"}}]
    )
    await migrate(db, old_database.vault)
    stored = await db["sessions"].find({"_id": {"$in": [1, 2]}}).sort("_id", 1).to_list(None)
    assert stored == [{"_id": 1, "access": {"hash": "a"}, "application": "web"}, {"_id": 2, "access": {"hash": "b"}}]


async def test_clients_get_their_estimated_one_repetition_maximums(old_database: Services) -> None:
    """The highest of an estimate, and of heaviest loads by Epley: 90 x 40/30 = 120; 13 repetitions estimate nothing."""
    db, company, ana, ben = old_database.db, ObjectId(), ObjectId(), ObjectId()
    records = [
        (ana, SQUAT, "estimated_1rm", 110, 5),
        (ana, SQUAT, "heaviest_load", 90, 10),
        (ana, SQUAT, "heaviest_load", 300, 13),
        (ana, PRESS, "heaviest_load", 60, None),
        (ben, SQUAT, "most_reps", 30, 30),
        (ben, PRESS, "estimated_1rm", 70, 3),
    ]
    await db["personalRecords"].insert_many(
        {
            "companyId": company,
            "customerId": customer,
            "exerciseId": exercise,
            "type": kind,
            "value": value,
            "reps": reps,
        }
        for customer, exercise, kind, value, reps in records
    )
    known = {"companyId": company, "customerId": ben, "exerciseId": PRESS, "source": "records", "value": 75}
    await db["trainingMaxes"].insert_one(dict(known))

    for _ in range(2):
        await migrate(db, old_database.vault)
        await db[migrations.COLLECTION].delete_many({"_id": 7})

    stored = [document async for document in db["trainingMaxes"].find({"companyId": company})]
    assert {(each["customerId"], each["exerciseId"], each["value"]) for each in stored} == {
        (ana, SQUAT, 120),
        (ana, PRESS, 60),
        (ben, PRESS, 75),
    }
    assert len(stored) == 3


async def test_authors_are_taken_from_the_activity_feed(old_database: Services) -> None:
    """Notes had no author and no flags; logs did not say which texts the client wrote."""
    db = old_database.db
    company, ana, coach = ObjectId(), ObjectId(), ObjectId()
    notes = [{"_id": ObjectId(), "companyId": company, "customerId": ana, "content": text} for text in ("a", "b")]
    text, rating = ObjectId(), ObjectId()
    questions = [{"_id": text, "type": "text"}, {"_id": rating, "type": "rating"}]
    answers = [{"questionId": text, "value": "Hard"}, {"questionId": rating, "value": 3}]
    form = {"_id": ObjectId(), "type": "FORM", "comment": "Ouch", "form": {"questions": questions}, "answers": answers}
    by_coach, not_logged = ({"_id": ObjectId(), "type": "TASK", "comment": "x"} for _ in range(2))
    items = [{**item, "isCompleted": True} for item in (form, by_coach, not_logged)]
    block = {"_id": ObjectId(), "companyId": company, "customerId": ana, "items": items, "done": None}
    entry = {"companyId": company, "customerId": ana}
    await db["notes"].insert_many(notes)
    await db["workoutBlocks"].insert_one(block)
    await db["companies"].insert_one({"_id": company, "companyId": company, "companyName": "Old"})
    await db["activity"].insert_many(
        [
            {**entry, "type": "note_added", "sourceId": notes[0]["_id"], "actor": {"_id": coach, "name": "Olga"}},
            {**entry, "type": "note_added", "sourceId": notes[1]["_id"]},
            {**entry, "type": "form_submitted", "sourceId": form["_id"], "actor": {"type": "client", "_id": ana}},
            {**entry, "type": "item_logged", "sourceId": by_coach["_id"], "actor": {"type": "coach", "_id": coach}},
        ]
    )

    await migrate(db, old_database.vault, migrations.STEPS[:8])

    stored = [await db["notes"].find_one({"_id": note["_id"]}) for note in notes]
    flags = {"isPinned": False, "isHealth": False}
    authors = ({"_id": coach, "name": "Olga"}, None)
    assert stored == [{**note, "author": author, **flags} for note, author in zip(notes, authors, strict=True)]
    migrated = await db["workoutBlocks"].find_one({"_id": block["_id"]})
    assert migrated is not None
    assert [item.get("clientTexts") for item in migrated["items"]] == [["comment", str(text)], None, None]
    [account] = await db["companies"].find({"_id": company}).to_list(None)
    assert account["notifications"] == {"messages": True}


async def test_entries_of_the_activity_feed_become_changes(old_database: Services) -> None:
    """They keep their time, author and data, are numbered later, and are neither events nor undoable."""
    db, company, ana, coach = old_database.db, ObjectId(), ObjectId(), ObjectId()
    common = {"companyId": company, "customerId": ana, "createdAt": CREATED, "updatedAt": CREATED, "version": 0}
    types = ["workout_completed", "item_logged", "form_submitted", "metric_recorded", "photo_added", "plan_uploaded"]
    types += ["personal_record", "note_added", "program_assigned"]
    actors = [{"type": "client", "_id": ana, "name": "Ana"}, {"type": "key", "_id": coach, "name": "Olga"}, None]
    entries = [
        {
            **common,
            "_id": ObjectId(),
            "type": kind,
            "date": CREATED.replace(day=number + 1),
            "sourceId": ObjectId(),
            "data": {"number": number},
            "actor": actors[number % 3],
        }
        for number, kind in enumerate(types)
    ]
    await db["activity"].insert_many(entries)
    for _ in range(2):
        await migrate(db, old_database.vault)
        await db[migrations.COLLECTION].delete_many({"_id": 10})

    assert "activity" not in await db.list_collection_names()
    changes = await db["changes"].find({"companyId": company}).sort("feedAt").to_list(None)
    assert [(change["feedAt"], change["customerId"], change["feed"][0]["data"]) for change in changes] == [
        (entry["date"], ana, entry["data"]) for entry in entries
    ]
    assert [change["feed"][0]["type"] for change in changes] == [
        "workout.completed",
        "item.logged",
        "form.submitted",
        "metric.recorded",
        "photo.added",
        "plan.uploaded",
        "record.achieved",
        "note.created",
        "program.assigned",
    ]
    assert [change["feed"][0]["sourceId"] for change in changes] == [entry["sourceId"] for entry in entries]
    assert [(change["actor"], change["via"]) for change in changes[:3]] == list(
        zip(actors, ("client", "apiKey", "session"), strict=True)
    )
    assert {(change["eventCount"], change["undoable"], change["pending"]) for change in changes} == {(0, False, True)}


async def test_stored_links_to_pictures_of_exercises_become_files(old_database: Services) -> None:
    db = old_database.db
    company_id, picture_id, thumbnail_id = ObjectId(), ObjectId(), ObjectId()
    await db["fs.files"].insert_one({"_id": picture_id, "companyId": company_id, "contentType": "image/png"})

    def link(file_id: ObjectId) -> str:
        return f"http://localhost:8080/files/{file_id}?expires=4948842612&signature=c2ln"

    media = {"_id": ObjectId(), "type": "image", "key": None, "source": None, "thumbnailUrl": link(thumbnail_id)}
    other = {**media, "url": "https://pictures.example/a.jpg", "thumbnailUrl": None}
    exercise = {"_id": ObjectId(), "companyId": company_id, "media": [{**media, "url": link(picture_id)}, other]}
    stranger = {**exercise, "_id": ObjectId(), "companyId": ObjectId()}
    await db["exercises"].insert_many(
        [each | {"image": link(picture_id), "thumbnail": link(thumbnail_id)} for each in (exercise, stranger)]
    )

    await migrate(db, old_database.vault)

    upload = {
        "_id": media["_id"],
        "type": "image",
        "key": f"{picture_id}.png",
        "source": "upload",
        "url": None,
        "thumbnailUrl": None,
        "fileId": picture_id,
        "thumbnailId": thumbnail_id,
    }
    assert await db["exercises"].find_one({"_id": exercise["_id"]}) == {**exercise, "media": [upload, other]}
    assert await db["exercises"].find_one({"_id": stranger["_id"]}) == stranger, "a file of another company"
