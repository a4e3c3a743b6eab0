"""Rules for every declared page and form."""

from __future__ import annotations

import secrets

import pytest

from coaching_service.people import team
from coaching_service.people.sessions import service as sessions
from coaching_service.web import formatting, views
from coaching_service.web.pages import Page
from tests.conftest import PASSWORD
from tests.contract.test_queries import profiling
from tests.support.client import UNKNOWN, CoachClient
from tests.support.declared_world import World
from tests.support.sampled import some
from tests.support.visitor import Visitor
from tests.web.conftest import ClientPage, NewVisitor

PAGES = views.list_pages()
INSIDE = [page for page in PAGES if page.access.audience not in ("public", "customer")]
OF_CLIENTS = [page for page in PAGES if page.access.audience == "customer"]
DOWNLOADS = (".zip", ".csv", "/picture", "/file")
SEEN = [page for page in INSIDE if page.method == "GET" and not page.path.endswith(DOWNLOADS)]
SEEN_BY_CLIENTS = [page for page in OF_CLIENTS if page.method == "GET" and not page.path.endswith(DOWNLOADS)]
FORMS = [page for page in INSIDE + OF_CLIENTS if page.method == "POST"]
OTHER_NAMES = {"blockId": "wblockId"}


def filled(page: Page, world: World) -> str:
    path = page.path
    wires = [wire for wire, _ in page.path_parameters]
    for wire in wires:
        name = "circuitId" if (wire, wires[-1]) == ("witemId", "exerciseId") else OTHER_NAMES.get(wire, wire)
        if wire == "witemId" and path.startswith("/train/") and path.endswith("/form"):
            name = "formItemId"
        path = path.replace(f"{{{wire}}}", world.get(f"{wires[0]}/{name}") or world.get(name, UNKNOWN))
    return path


@pytest.fixture
async def owner_of_all(company: CoachClient, visitor: Visitor) -> Visitor:
    session = await sessions.start_for_coach(company.ctx, company.ctx.caller.id)
    visitor.keep(coach_session=session.token)
    return visitor


def test_every_form_has_a_page_and_a_unique_name() -> None:
    forms_on_pages = {page.handler for page in PAGES if page.method == "GET"}
    for form in FORMS:
        assert form.on is None or form.on in forms_on_pages, form.path
    forms = [page for page in PAGES if page.method == "POST"]
    assert len({(form.on, form.name) for form in forms}) == len(forms), "the name is unique on its page"


async def test_every_page_renders_without_a_scan_of_a_collection(
    company: CoachClient, owner_of_all: Visitor, world: World
) -> None:
    wrong = []
    async with profiling(company) as profile:
        for page in SEEN:
            drawn = await owner_of_all.get(filled(page, world))
            if drawn.status != 200 or "None" in drawn.text or "<bound method" in drawn.html:
                wrong.append((page.path, drawn.status, drawn.text[:300]))
        (await owner_of_all.get("/app/customers?keywords=ana&groups=A&assignedTo=none")).ok()
        entries = await profile()
    assert wrong == []
    assert len(entries) > len(SEEN)
    # The dispatcher of webhooks looks meanwhile which applications have any.
    of_pages = [each for each in entries if not each["ns"].endswith(".applicationWebhooks")]
    assert [(e["ns"], e["command"]) for e in of_pages if "COLLSCAN" in e["planSummary"]] == []


async def test_every_page_renders_for_a_new_company(owner_page: Visitor, coach: CoachClient) -> None:
    customer = await coach.create_customer()
    wrong = []
    for page in SEEN:
        if {wire for wire, _ in page.path_parameters} <= {"customerId"}:
            drawn = await owner_page.get(filled(page, {"customerId": customer["_id"]}))
            if drawn.status != 200:
                wrong.append((page.path, drawn.status, drawn.text[:300]))
    assert wrong == []


async def test_other_companies_data_is_not_found(owner_page: Visitor, world: World) -> None:
    data = {"csrf": (await owner_page.get("/app/customers")).form("/app/sign-out").fields[0][1]}
    wrong = []
    with_identifiers = [page for page in INSIDE if page.path_parameters]
    unknown = some(with_identifiers, 30)
    for page in with_identifiers:
        for identifiers in (world, {}) if page in unknown else (world,):
            sent = data if page.method == "POST" else None
            response = await owner_page.send(page.method, filled(page, identifiers), data=sent)
            # 400: the form is validated before the document is loaded; the page of the form is not shown either.
            is_unknown = response.status == 404 or (response.status == 400 and page.form is not None)
            if not is_unknown or "Page not found" not in response.text:
                wrong.append((page.method, page.path, response.status, response.text[:300]))
    assert wrong == []


@pytest.fixture
async def powerless(company: CoachClient, new_visitor: NewVisitor, password_hash: str) -> Visitor:
    email = f"eli-{secrets.token_hex(6)}@example.com"
    await team.create(company.ctx, "Eli", email, [], "all", password_hash)
    visitor = new_visitor()
    (await visitor.sign_in(email, PASSWORD)).ok()
    return visitor


async def test_coach_without_permissions_sees_which_is_missing(powerless: Visitor, world: World) -> None:
    token = (await powerless.get("/app/settings/company")).form("/app/sign-out").fields[0][1]
    for page in INSIDE:
        data = {"csrf": token} if page.method == "POST" else None
        seen = await powerless.send(page.method, filled(page, world), data=data, follow=False)
        if page.access.permissions:
            area, _, action = page.access.permissions[0].partition(".")
            called = "Clients" if area == "customers" else area.capitalize()
            needed = f"{called}: {action}" if action else called
            seen.ok(403).says(f"The permission “{needed}” is missing.")
        elif page.access.owner_only:
            seen.ok(403).says("This operation is for the company's owner")
        else:
            assert seen.status in (200, 303, 400, 404), (page.path, seen.status)
    links = (await powerless.get("/app")).ok().links
    assert not {"/app/customers", "/app/exercises", "/app/programs"} & set(links), (
        "areas without permission are not linked"
    )


async def test_anonymous_visitor_is_redirected_to_sign_in(visitor: Visitor, world: World) -> None:
    for page in SEEN + SEEN_BY_CLIENTS:
        redirect = await visitor.get(filled(page, world), follow=False)
        assert redirect.ok(303).headers["Location"].startswith("/app/sign-in"), page.path


@pytest.fixture
async def client_of_all(company: CoachClient, world: World, client_page: ClientPage) -> Visitor:
    return await client_page(company, {"_id": world["customerId"]})


def test_only_pages_under_train_are_for_clients() -> None:
    assert {page.path for page in OF_CLIENTS if not page.path.startswith("/train")} == set()
    assert {page.path for page in PAGES if page.path.startswith("/train")} - {page.path for page in OF_CLIENTS} == {
        "/train/first-access",
        "/train/manifest.webmanifest",
        "/train/no-invitations",
        "/train/reset-password",
        "/train/settings/notifications/off",
    }


async def test_every_page_for_clients_renders(
    company: CoachClient, client_of_all: Visitor, client_page: ClientPage, world: World
) -> None:
    newcomer = await client_page(company, await company.create_customer("Bea"))
    wrong = []
    async with profiling(company) as profile:
        for page in SEEN_BY_CLIENTS:
            drawn = await client_of_all.get(filled(page, world))
            if drawn.status != 200 or "None" in drawn.text or "<bound method" in drawn.html:
                wrong.append((page.path, drawn.status, drawn.text[:300]))
            if not page.path_parameters:
                empty = await newcomer.get(page.path)
                if empty.status != 200 or "None" in empty.text:
                    wrong.append((page.path, empty.status, empty.text[:300]))
        entries = await profile()
    assert wrong == []
    assert [(e["ns"], e["command"]) for e in entries if "COLLSCAN" in e["planSummary"]] == []


async def test_clients_do_not_find_data_of_others(
    coach: CoachClient, company: CoachClient, client_page: ClientPage, world: World
) -> None:
    for employer in (coach, company):
        stranger = await client_page(employer, await employer.create_customer("Bea"))
        token = (await stranger.get("/train")).html.partition('data-csrf="')[2].partition('"')[0]
        for page in (page for page in OF_CLIENTS if page.path_parameters and "exerciseId" not in page.path):
            data = {"csrf": token} if page.method == "POST" else None
            response = await stranger.send(page.method, filled(page, world), data=data)
            assert response.status == 404 or (response.status == 400 and page.form is not None), page.path
            assert "Page not found" in response.text, "the page of the form is not shown either"


async def test_users_are_redirected_from_pages_of_others(
    owner_of_all: Visitor, client_of_all: Visitor, world: World
) -> None:
    for page in SEEN_BY_CLIENTS:
        redirect = await owner_of_all.get(filled(page, world), follow=False)
        assert redirect.ok(303).headers["Location"] == "/app", page.path
    for page in SEEN:
        redirect = await client_of_all.get(filled(page, world), follow=False)
        if page.access.audience == "coach":
            assert redirect.ok(303).headers["Location"] == "/train", page.path
    csrf = (await client_of_all.get("/train")).html.partition('data-csrf="')[2].partition('"')[0]
    for page in INSIDE:
        if page.method == "POST":
            rejected = await client_of_all.send("POST", filled(page, world), data={"csrf": csrf})
            rejected.ok(403).says("Access denied")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1, "1 byte"),
        (40, "40 bytes"),
        (1_234, "1.2\u00a0kB"),
        (25_000_000, "25\u00a0MB"),
        (5_600_000_000, "5.6\u00a0GB"),
    ],
)
def test_file_size_is_never_zero(size: int, text: str) -> None:
    assert formatting.file_size(size) == text
