"""Pages that coaches and clients share, as clients see them: signing in, errors, ended sessions, new passwords."""

from __future__ import annotations

from coaching_service.core.ids import ObjectId
from coaching_service.people.identities import service as identities
from tests.conftest import PASSWORD
from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import client_path
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import ClientPage

EMAIL, OTHER_EMAIL = "ana.look@example.com", "ana.reset@example.com"


def looks_for_clients(page: HtmlPage) -> bool:
    return '<body class="train' in page.html


def navigation(page: HtmlPage) -> set[str]:
    return {"/train/calendar", "/app/customers"} & set(page.links)


async def test_errors_have_advice_for_clients(coach: CoachClient, client_page: ClientPage) -> None:
    ana = await client_page(coach, await coach.create_customer("Ana"))
    csrf = (await ana.get("/train/settings")).form("/app/sign-out").fields[0][1]
    missing = (await ana.get(f"/train/workouts/{UNKNOWN}")).ok(404)
    missing.says("Page not found", "Your coach may have moved or removed it", "Back to Today")
    assert navigation(missing) == {"/train/calendar"}
    refused = await ana.send("POST", f"/app/customers/{UNKNOWN}/archive", data={"csrf": csrf})
    refused.ok(403).says("Access denied", "ask your coach")
    assert "permission" not in refused.text
    assert navigation(refused) == {"/train/calendar"}


async def test_visitor_sees_the_look_for_clients_under_train(coach: CoachClient, visitor: Visitor) -> None:
    nowhere = (await visitor.get("/train/nowhere")).ok(404)
    assert "/app/sign-in?next=/train" in nowhere.links
    for page in (
        nowhere,
        await visitor.get("/train/settings"),
        await visitor.get("/train/reset-password?token=x"),
        await visitor.get("/train/first-access?token=x"),
    ):
        assert looks_for_clients(page), page.path
        assert navigation(page) == set(), page.path
    page = await visitor.get("/app/sign-in")
    assert not looks_for_clients(page)
    assert "/app/sign-up" in page.links


async def test_form_of_an_ended_session_is_filled_in_after_sign_in(coach: CoachClient, client_page: ClientPage) -> None:
    customer = await coach.create_customer("Ana", email=EMAIL, sendInvitation=False)
    (await (await coach.interactive()).put(client_path(customer, "password"), {"password": PASSWORD})).ok()
    ana = await client_page(coach, customer)
    page = await ana.get("/train/messages")
    await coach.ctx.db["sessions"].delete_many({"subjectId": ObjectId(customer["_id"])})

    expired = await ana.submit(page, "/train/messages", text="My knee hurts")
    expired.ok(401).says("Your session has ended")
    assert looks_for_clients(expired)
    assert "/app/sign-in?next=/train" in expired.links
    again = await ana.submit(
        expired, "/train/messages", reauthentication__email=EMAIL, reauthentication__password=PASSWORD
    )
    again.ok().says("You are signed in again.", "My knee hurts")
    (await ana.submit(again, "/train/messages")).ok().says("My knee hurts", "Sent")


async def test_client_resets_the_password(coach: CoachClient, client_page: ClientPage, visitor: Visitor) -> None:
    customer = await coach.create_customer("Ana", email=OTHER_EMAIL, sendInvitation=False)
    (await (await coach.interactive()).put(client_path(customer, "password"), {"password": PASSWORD})).ok()
    phone = await client_page(coach, customer)
    path = "/train/reset-password"
    (await visitor.get(path)).ok().says("Open this page with the link from our email.")
    unknown = await visitor.submit(await visitor.get(f"{path}?token=unknown"), path, password="another fine phrase")
    unknown.ok(401).says("The token is unknown, used or older than an hour")
    token = await identities.create_reset_token(coach.ctx, ObjectId(customer["_id"]), "customer")
    short = await visitor.submit(await visitor.get(f"{path}?token={token}"), path, password="short")
    short.ok(400).says("This must be at least 12 characters long.")

    done = await visitor.submit(short, path, password="another fine phrase")
    assert done.ok().says("Password changed. Sign in").path == "/app/sign-in?next=/train"
    assert looks_for_clients(done)
    assert (await phone.get("/train")).path.startswith("/app/sign-in"), "every session has ended"
    signed_in = await visitor.submit(done, "/app/sign-in", email=OTHER_EMAIL, password="another fine phrase")
    assert signed_in.ok().path == "/train"
