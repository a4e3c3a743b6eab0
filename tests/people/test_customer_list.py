"""Finding clients: the list, its filters and its pages."""

from __future__ import annotations

import pytest

from tests.support.client import UNKNOWN, CoachClient
from tests.support.databases import profile_of

PAGE = {"archived": "false", "pageSize": 20, "pageNum": 1}


async def test_list_is_sorted_without_regard_to_case_and_accents(coach: CoachClient) -> None:
    for name, surname in [("émile", "Z"), ("Zoe", ""), ("Emil", "A"), ("eMile", "b"), ("Ämil", "")]:
        await coach.create_customer(name, surname=surname)

    assert await coach.names() == ["Ämil", "Emil", "eMile", "émile", "Zoe"]


async def test_contains_finds_name_surname_and_address_without_regard_to_case_and_accents(coach: CoachClient) -> None:
    """Contract 4: `contains` filters by name, surname or email: "jose" finds "José"."""
    await coach.create_customer("José", surname="García", email="pepe@correo.example")
    await coach.create_customer("Maria", surname="Josefsson")
    await coach.create_customer("Nobody")

    assert await coach.names(contains="jose") == ["José", "Maria"]
    assert await coach.names(contains="GARCIA") == ["José"]
    assert await coach.names(contains="correo.exam") == ["José"]
    assert await coach.names(contains="jose gar") == ["José"]
    assert await coach.names(contains="a josefss") == ["Maria"]
    assert await coach.names(contains="josé garcía-") == []


@pytest.mark.parametrize("typed", ["o'brien", "O’Brien", "obi-wan o`b", "d'a", "d’angelo-o'"])
async def test_contains_finds_all_kinds_of_apostrophes(coach: CoachClient, typed: str) -> None:
    for surname in ("O'Brien", "O’Brien", "D’Angelo-O'Hara", "D'Angelo-O’Hara", "Oman"):
        await coach.create_customer("Obi-Wan", surname=surname)
    customers = (await coach.customers(contains=typed))["docs"]
    expected = ["D'Angelo-O’Hara", "D’Angelo-O'Hara"] if typed.startswith("d") else ["O'Brien", "O’Brien"]
    assert sorted(each["surname"] for each in customers) == expected


@pytest.mark.parametrize("special", [".", "*", "\\", "(", "[a", "^", "$", "a|b", "+", "?", "{1}", "\x00", "%"])
async def test_special_characters_in_contains_are_plain(coach: CoachClient, special: str) -> None:
    await coach.create_customer("Plain")
    assert await coach.names(contains=special) == []
    if special != "\x00":
        await coach.create_customer(f"Odd {special} name")
        assert await coach.names(contains=special) == [f"Odd {special} name"]


async def test_groups_are_or_matched_and_commas_are_literal(coach: CoachClient) -> None:
    """Contract 4: `groups` repeatable, multiple values OR-matched; commas in a group name are literal."""
    await coach.create_customer("Ana", groups=["Morning", "Strength"])
    await coach.create_customer("Bo", groups=["Evening"])
    await coach.create_customer("Cy", groups=["Morning, early"])

    assert await coach.names(groups=["Morning", "Evening"]) == ["Ana", "Bo"]
    assert await coach.names(groups="Morning, early") == ["Cy"]
    assert await coach.names(groups="Morning,Evening") == []
    assert (await coach.get("/coach/customers/groups")).ok() == [
        {"name": "Evening", "count": 1},
        {"name": "Morning", "count": 1},
        {"name": "Morning, early", "count": 1},
        {"name": "Strength", "count": 1},
    ]


async def test_assigned_to_takes_coaches_and_none(coach: CoachClient) -> None:
    """Contract 4: `assignedTo` OR-matched; `none` includes customers without an assigned trainer."""
    me = str(coach.ctx.caller.id)
    await coach.create_customer("Mine", assignedTo=me)
    await coach.create_customer("Nobody's")

    assert await coach.names(assignedTo=me) == ["Mine"]
    assert await coach.names(assignedTo="none") == ["Nobody's"]
    assert await coach.names(assignedTo=[me, "none"]) == ["Mine", "Nobody's"]
    assert await coach.names(assignedTo=UNKNOWN) == []
    (await coach.get("/coach/customers", **PAGE, assignedTo="someone")).refused(400, "assignedTo")


async def test_filters_combine(coach: CoachClient) -> None:
    me = str(coach.ctx.caller.id)
    await coach.create_customer("Ana", groups=["A"], assignedTo=me)
    await coach.create_customer("Anabel", groups=["B"], assignedTo=me)
    await coach.create_customer("Bo", groups=["A"], assignedTo=me)

    page = await coach.customers(contains="ana", groups="A", assignedTo=me)
    assert [customer["name"] for customer in page["docs"]] == ["Ana"]
    assert page["totalDocs"] == 1


async def test_pages_contain_every_client_once(coach: CoachClient) -> None:
    for position in range(7):
        await coach.create_customer("Same", surname=str(position // 3))

    seen: list[str] = []
    number: int | None = 1
    while number is not None:
        page = await coach.customers(pageSize=3, pageNum=number)
        seen += [customer["_id"] for customer in page["docs"]]
        assert page["totalDocs"] == 7
        assert page["hasNextPage"] is (page["nextPage"] is not None)
        number = page["nextPage"]

    assert len(seen) == len(set(seen)) == 7
    assert page["totalPages"] == 3
    assert (page["hasPrevPage"], page["prevPage"], page["pagingCounter"]) == (True, 2, 7)


async def test_a_page_past_the_end_is_empty(coach: CoachClient) -> None:
    await coach.create_customer()
    page = await coach.customers(pageNum=10**15)
    assert (page["docs"], page["hasNextPage"], page["nextPage"], page["totalDocs"]) == ([], False, None, 1)


async def test_letters_with_strokes_and_ligatures_are_folded(coach: CoachClient) -> None:
    for name in ("Łukasz", "Øystein", "Đorđe", "Æneas", "Zoe"):
        await coach.create_customer(name)
    assert await coach.names() == ["Æneas", "Đorđe", "Łukasz", "Øystein", "Zoe"]
    for text, names in [("lukasz", "Łukasz"), ("oystein", "Øystein"), ("dorde", "Đorđe"), ("aeneas", "Æneas")]:
        assert await coach.names(contains=text) == [names]


async def test_email_finds_the_whole_address_without_regard_to_case(coach: CoachClient) -> None:
    for name, email in [("Ana", "Jose.Ana@Example.com"), ("Eva", "jose.ana@example.com"), ("Zoe", "ana@example.com")]:
        await coach.create_customer(name, email=email, sendInvitation=False)
    await coach.create_customer("Accent", email="josé.ana@example.com", sendInvitation=False)
    await coach.create_customer("Nobody")

    assert await coach.names(email="JOSE.ANA@example.COM") == ["Ana", "Eva"]
    assert await coach.names(email=" ana@example.com ") == ["Zoe"]
    assert await coach.names(email="JOSÉ.ana@example.com") == ["Accent"]
    for other in ("na@example.com", "ana@example", "", "\x00", ".*", "$gt"):
        assert await coach.names(email=other) == []


async def test_email_combines_with_the_other_filters_and_pages(coach: CoachClient) -> None:
    for number in range(3):
        await coach.create_customer(f"Client {number}", email="a@example.com", groups=["G"], sendInvitation=False)
    archived = await coach.create_customer("Client 3", email="a@example.com", sendInvitation=False)
    (await coach.put("/coach/customers/archive", {"id": archived["_id"]})).ok()

    page = await coach.customers(email="A@example.com", pageSize=2, pageNum=2)
    assert ([each["name"] for each in page["docs"]], page["totalDocs"]) == (["Client 2"], 3)
    assert await coach.names(email="a@example.com", contains="1") == ["Client 1"]
    assert await coach.names(email="a@example.com", groups="H") == []
    assert await coach.names(email="a@example.com", archived="true") == ["Client 3"]
    assert await coach.names(email="a@example.com", assignedTo="none", contains="\x00") == []


async def test_email_reads_only_the_clients_who_have_it(coach: CoachClient, other_company: CoachClient) -> None:
    for company in (coach, other_company):
        for number in range(8):
            await company.create_customer(f"C {number}", email=f"client{number}@example.com", sendInvitation=False)
    db = coach.ctx.db
    await db.command("profile", 0)
    await db["system.profile"].drop()
    await db.command("profile", 2)
    assert await coach.names(email="CLIENT7@example.com") == ["C 7"]
    await db.command("profile", 0)
    profiled = profile_of(db).find({"ns": f"{db.name}.customers", "planSummary": {"$exists": True}})
    entries = [
        entry async for entry in profiled if "client7@" in str(entry["command"]).lower()
    ]  # not of the background
    assert entries
    assert all("COLLSCAN" not in entry["planSummary"] and entry["keysExamined"] <= 3 for entry in entries)


async def test_groups_are_found_with_any_apostrophe(coach: CoachClient) -> None:
    await coach.create_customer("Ana", groups=["Women\u2019s"])
    await coach.create_customer("Bo", groups=["Women's"])
    for typed in ("Women's", "Women\u2019s", "Women`s"):
        assert await coach.names(groups=typed) == ["Ana", "Bo"]
    assert await coach.names(groups="Womens") == []


async def test_an_address_is_found_in_both_spellings_of_its_domain(coach: CoachClient) -> None:
    await coach.create_customer("Ana", email="ana@exämple.com")
    await coach.create_customer("Bo", email="bo@xn--exmple-cua.com")
    for local, name in (("ana", "Ana"), ("BO", "Bo")):
        for domain in ("exämple.com", "xn--exmple-cua.com", "EXÄMPLE.com"):
            assert await coach.names(email=f"{local}@{domain}") == [name], domain


@pytest.mark.parametrize("external_id", [".", ".."])
async def test_an_external_identifier_that_is_a_step_in_a_path_is_refused(coach: CoachClient, external_id: str) -> None:
    refused = (await coach.post("/coach/customers", {"name": "Ana", "externalId": external_id})).refused(400)
    assert refused["errors"][0]["code"] == "INVALID_EXTERNAL_ID"
    await coach.create_customer("Bo", externalId="...")
