"""Forms made in the web application."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.visitor import Visitor

FORMS = "/app/settings/forms"


async def test_form_is_created_changed_and_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    created = await owner_page.submit(
        await owner_page.get(FORMS),
        FORMS,
        name="Check-in",
        questions__0__label="How was the week?",
        questions__1__label="Sleep",
        questions__1__type="choice",
        questions__1__options="Good\nBad",
        questions__1__required="true",
    )
    created.ok().says("Check-in created.", "As clients see it", "How was the week?", "Good", "Bad")
    (stored,) = (await coach.get("/coach/forms")).ok()
    assert [(each["label"], each["type"], each["options"], each["required"]) for each in stored["questions"]] == [
        ("How was the week?", "text", [], False),
        ("Sleep", "choice", ["Good", "Bad"], True),
    ]

    changed = await owner_page.submit(
        created,
        f"{FORMS}/{stored['_id']}",
        questions__0__position="2",
        questions__1__position="1",
        questions__2__label="Energy",
        questions__2__type="rating",
    )
    changed.ok().says("Changes saved.")
    (after,) = (await coach.get("/coach/forms")).ok()
    assert [each["label"] for each in after["questions"]] == ["Sleep", "How was the week?", "Energy"]
    assert after["questions"][0]["_id"] == stored["questions"][1]["_id"], "a moved question stays the same question"

    removed = await owner_page.submit(changed, f"{FORMS}/{stored['_id']}", questions__0__out="true")
    assert [each["label"] for each in (await coach.get("/coach/forms")).ok()[0]["questions"]] == [
        "How was the week?",
        "Energy",
    ]
    removed.ok()
    confirmation = await owner_page.get(f"{FORMS}/{stored['_id']}/delete")
    (await owner_page.submit(confirmation, f"{FORMS}/{stored['_id']}/delete")).ok().says("Check-in deleted.")
    assert (await coach.get("/coach/forms")).ok() == []


async def test_incomplete_form_keeps_what_was_typed(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(FORMS)
    empty = await owner_page.submit(page, FORMS, name="Check-in")
    empty.ok(400).says("a form has at least one question")
    wrong = await owner_page.submit(
        page, FORMS, name="Check-in", questions__2__label="Sleep", questions__2__type="multi"
    )
    wrong.ok(400).says("This must have options, one in each line.")
    assert wrong.form(FORMS).controls["questions.2.label"]["value"] == "Sleep"
    many = "\n".join(map(str, range(51)))
    long = await owner_page.submit(
        page,
        FORMS,
        name="Check-in",
        questions__0__label="Sleep",
        questions__0__type="multi",
        questions__0__options=many,
    )
    long.ok(400).says("This must not hold more than 50 entries.")
    assert (await coach.get("/coach/forms")).ok() == []
