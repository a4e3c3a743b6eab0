"""Finding clients: the list, its filters and its pages."""

from __future__ import annotations

import pytest

from tests.support.client import UNKNOWN, CoachClient

PAGE = {"archived": "false", "pageSize": 20, "pageNum": 1}


async def test_list_is_sorted_without_regard_to_case_and_accents(coach: CoachClient) -> None:
    for name, surname in [("émile", "Z"), ("Zoe", ""), ("Emil", "A"), ("eMile", "b"), ("Ämil", "")]:
        await coach.create_customer(name, surname=surname)

    assert await coach.names() == ["Ämil", "Emil", "eMile", "émile", "Zoe"]


async def test_contains_finds_name_surname_and_address_without_regard_to_case_and_accents(coach: CoachClient) -> None:
    """Specification 4: `contains` filters by name, surname or email. Contract 4: "jose" finds "José"."""
    await coach.create_customer("José", surname="García", email="pepe@correo.example")
    await coach.create_customer("Maria", surname="Josefsson")
    await coach.create_customer("Nobody")

    assert await coach.names(contains="jose") == ["José", "Maria"]
    assert await coach.names(contains="GARCIA") == ["José"]
    assert await coach.names(contains="correo.exam") == ["José"]
    assert await coach.names(contains="jose gar") == ["José"]
    assert await coach.names(contains="a josefss") == ["Maria"]
    assert await coach.names(contains="josé garcía-") == []


@pytest.mark.parametrize("special", [".", "*", "\\", "(", "[a", "^", "$", "a|b", "+", "?", "{1}", "\x00", "%"])
async def test_special_characters_in_contains_are_plain(coach: CoachClient, special: str) -> None:
    await coach.create_customer("Plain")
    assert await coach.names(contains=special) == []
    if special != "\x00":
        await coach.create_customer(f"Odd {special} name")
        assert await coach.names(contains=special) == [f"Odd {special} name"]


async def test_groups_are_or_matched_and_commas_are_literal(coach: CoachClient) -> None:
    """Specification 4: `groups` repeatable, multiple values OR-matched; commas in a group name are literal."""
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
    """Specification 4: `assignedTo` OR-matched; `none` includes customers without an assigned trainer."""
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
    for number in range(7):
        await coach.create_customer("Same", surname=str(number // 3))

    seen, number = [], 1
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
    for sought, names in [("lukasz", "Łukasz"), ("oystein", "Øystein"), ("dorde", "Đorđe"), ("aeneas", "Æneas")]:
        assert await coach.names(contains=sought) == [names]
