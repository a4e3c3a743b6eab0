"""Form checks in the web application, without scripts: the client sends and answers, the coach looks and answers."""

from __future__ import annotations

from tests.core.test_uploads import PDF, picture, stored
from tests.progress.test_form_checks import LINE, MP4, media_path
from tests.progress.test_form_checks import send as send_over_rest
from tests.support.client import TUESDAY, CoachClient
from tests.support.figures import renew_figures
from tests.support.training import Json, block_with, exercise_of, form_of
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage, Colleague

TWO_SETS = [{"type": "reps_load", "minPlannedReps": 8, "load": 60}] * 2


async def plan(coach: CoachClient, name: str = "Ana") -> tuple[Json, Json]:
    """A client with a squat to do."""
    customer = await coach.create_customer(name)
    squat = await coach.create_exercise(f"Squat of {name}")
    return customer, await block_with(coach, customer, exercise_of(squat, *TWO_SETS))


def path_of_media(block: Json) -> str:
    return f"/train/workouts/{block['_id']}/items/{block['items'][0]['_id']}/media"


async def test_client_sends_a_video_of_a_set_and_answers_the_coach(coach: CoachClient, client_page: ClientPage) -> None:
    ana, block = await plan(coach)
    browser = await client_page(coach, ana)
    page = (await browser.get(f"/train/workouts/{block['_id']}")).ok().says("Comment, video, swap or skip")
    item, path = block["items"][0], path_of_media(block)
    page = await browser.submit(page, path, file=("plan.pdf", PDF), shown=f"{item['exerciseId']}-0-2")
    page.ok(400).says("must be", "Choose the file again.")
    page = await browser.submit(page, path, file=("squat.mp4", MP4), poster=("poster.jpg", MP4))
    page.ok(400)
    assert await stored(coach) == (0, 0)

    page = await browser.submit(
        page, path, file=("squat.mp4", MP4), poster=("poster.jpg", picture()), shown=f"{item['exerciseId']}-0-2"
    )

    page.ok().says("Sent to your coach.", "Set 2")
    [sent] = (await coach.get("/coach/media")).ok()["docs"]
    assert (sent["exerciseId"], sent["round"], sent["index"]) == (item["exerciseId"], None, 2)
    assert sent["posterUrl"] is not None
    for size, kind in (("full", "video/mp4"), ("small", "image/jpeg")):
        file = await browser.get(f"/train/media/{sent['_id']}/file?size={size}")
        assert file.ok().headers["Content-Type"] == kind
        assert file.headers["Cache-Control"] == "no-store"
    comment = {"text": "Chest <b>up</b>", "at": 65.5, "marks": [LINE]}
    (await coach.post(f"/coach/media/{sent['_id']}/comments", comment)).ok(201)
    page = (await browser.get(page.path)).ok().says("Chest <b>up</b>", "1:05")
    answer = f"{path}/{sent['_id']}/comments"
    (await browser.submit(page, answer, text="")).ok(400)
    page = (await browser.submit(page, answer, text="Like this?")).ok().says("Like this?")
    [_, own] = (await coach.get(f"/coach/media/{sent['_id']}")).ok()["comments"]
    assert (own["text"], own["at"], own["author"]["_id"]) == ("Like this?", None, ana["_id"])
    page = (await browser.submit(page, f"{path}/{sent['_id']}/delete")).ok().says("Deleted.")
    assert "Like this?" not in page.text
    assert await stored(coach) == (0, 0)


async def test_client_answers_a_photo_question_and_the_coach_sees_it_in_the_review(
    coach: CoachClient, client_page: ClientPage, owner_page: Visitor
) -> None:
    ana = await coach.create_customer("Ana")
    questions: list[Json] = [{"label": "From the front", "type": "photo", "required": True}, {"label": "How are you?"}]
    block = await block_with(coach, ana, form_of(*questions))
    browser = await client_page(coach, ana)
    path = f"/train/workouts/{block['_id']}/items/{block['items'][0]['_id']}/form"
    page = (await browser.get(path)).ok().says("From the front", "Take or choose a photo")
    page = await browser.submit(page, path, answers__1__value="Well")
    page.ok(400).says("This must be answered.")

    page = await browser.submit(page, path_of_media(block), file=("front.jpg", picture()))

    page.ok().says("Photo sent to your coach.", "Add another photo")
    page = (await browser.submit(page, path, answers__1__value="Well")).ok()
    page = (await browser.get(path)).ok().says("From the front", "Well", "Change your answers")
    [sent] = (await coach.get("/coach/media")).ok()["docs"]
    assert f"/train/media/{sent['_id']}/file?size=small" in page.html
    review = f"/app/customers/{ana['_id']}/blocks/{block['_id']}/review"
    (await owner_page.get(review)).ok().says("From the front", "How are you? Well")
    picture_of_answer = f'<img src="/app/form-checks/{sent["_id"]}/file?size=small"'
    await renew_figures(coach.ctx)
    for path in ("/app/inbox", f"/app/customers/{ana['_id']}/check-ins/responses", f"/app/attention/{ana['_id']}"):
        assert picture_of_answer in (await owner_page.get(path)).ok().says("From the front").html, path
    log = await owner_page.get(
        f"/app/customers/{ana['_id']}/blocks/{block['_id']}/items/{block['items'][0]['_id']}/log"
    )
    log.ok().says("answered with photos of the client")
    # The script of the page says that a photo waits on the device.
    other = await block_with(coach, ana, form_of(questions[0]), date=TUESDAY)
    waiting = f"/train/workouts/{other['_id']}/items/{other['items'][0]['_id']}/form"
    (await browser.submit(await browser.get(waiting), waiting, answers__0__value="waiting")).ok()


async def test_only_a_page_that_is_shown_counts_as_seen(coach: CoachClient, client_page: ClientPage) -> None:
    """The service worker reads pages to save them."""
    ana, block = await plan(coach)
    sent = (await send_over_rest(await coach.as_client(ana), media_path(block))).ok(201)
    (await coach.post(f"/coach/media/{sent['_id']}/comments", {"text": "Good"})).ok(201)

    async def is_unseen() -> bool:
        unseen = {"companyId": coach.ctx.company_id, "unseenBy": "client"}
        return bool(await coach.ctx.db["setMedia"].count_documents(unseen))

    browser = await client_page(coach, ana)
    path = f"/train/workouts/{block['_id']}"
    (await browser.get(path, headers={"X-Saves-Page": "1"})).ok().says("Good")
    assert await is_unseen()
    (await browser.get(path)).ok()
    assert not await is_unseen()


async def test_coach_answers_checks_one_after_another(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    (ana, block), (bea, other) = await plan(coach), await plan(coach, "Bea")
    (await owner_page.get("/app/form-checks")).ok().says("All form checks are answered")
    assert "Form checks to answer" not in (await owner_page.get("/app/inbox")).ok().text
    first = (await send_over_rest(await coach.as_client(ana), media_path(block), index="2")).ok(201)
    second = (await send_over_rest(await coach.as_client(bea), media_path(other), picture())).ok(201)
    viewer = await colleague("customers.view")

    inbox = (
        (await owner_page.get("/app/inbox")).ok().says("Form checks to answer", "Squat of Bea", "Squat of Ana, set 2")
    )
    assert f"/app/form-checks/{second['_id']}" in inbox.links
    page = (await owner_page.get(f"/app/form-checks/{second['_id']}")).ok()
    page.says("Squat of Bea", "Next: Ana", "Send, then the next one")
    path = f"{page.path}/comments"
    (await owner_page.submit(page, path, text="Good", at="3", then="next")).ok(400)  # a picture has no times
    (await owner_page.submit(page, path, text="Good", marks="[1]")).ok(400)
    page = await owner_page.submit(
        page, path, text="Good", marks='[{"kind": "line", "points": [[0, 0], [1, 0.5]]}]', then="next"
    )
    page.ok().says("Comment sent.", "Squat of Ana", "Set 2")
    [comment] = (await coach.get(f"/coach/media/{second['_id']}")).ok()["comments"]
    assert comment["marks"] == [LINE]
    page = await owner_page.submit(page, f"{page.path}/comments", text="Slower", at="1,5", then="stay")
    page.ok().says("Comment sent.", "Slower", "0:01", "Send and mark as checked")
    review = (await owner_page.get(f"/app/customers/{ana['_id']}/blocks/{block['_id']}/review")).ok()
    review.says("Form check: set 2", "Slower")
    review = await owner_page.submit(
        review, f"/app/form-checks/{first['_id']}/comments", text="From the review", then="review"
    )
    assert review.ok().path.endswith(f"/blocks/{block['_id']}/review")
    page = await owner_page.submit(page, f"/app/form-checks/{first['_id']}/reviewed", then="next")
    page.ok().says("Marked as checked.", "All form checks are answered")
    page = (await owner_page.get("/app/form-checks?all=true")).ok().says("Squat of Ana", "checked", "2 comments")
    page = (await owner_page.get(f"/app/form-checks/{first['_id']}?other={second['_id']}")).ok()
    assert "For comparison" not in page.text, "only what the same client has sent is compared"
    page = (await owner_page.submit(page, f"/app/form-checks/{first['_id']}/reviewed")).ok().says("On the list again.")
    shown = (await viewer.get(f"/app/form-checks/{first['_id']}")).ok().says("Slower")
    assert "<textarea" not in shown.html
    page = (await owner_page.submit(page, f"/app/form-checks/{first['_id']}/delete")).ok().says("Deleted.")
    (await owner_page.get(f"/app/form-checks/{first['_id']}")).ok(404)


async def test_a_video_is_compared_with_another_of_the_same_client(coach: CoachClient, owner_page: Visitor) -> None:
    ana, block = await plan(coach)
    client = await coach.as_client(ana)
    first, second = [(await send_over_rest(client, media_path(block), index=str(at))).ok(201) for at in (1, 2)]
    page: HtmlPage = (await owner_page.get(f"/app/form-checks/{second['_id']}")).ok().says("Compare with", "set 1")
    page = (await owner_page.get(f"{page.path}?other={first['_id']}")).ok()
    assert page.html.count("<video") == 2
    assert "For comparison: Squat of Ana" in page.html
    (await owner_page.get(f"{page.path}?other=x")).ok()
