"""Queries that are read more than once."""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request

from coaching_service.core.http.request_parsing import _load_cached, read_query
from coaching_service.core.query import QueryIdentifiers
from coaching_service.core.validation import Input, Text

ID = "66f0c0ffee0000000000abcd"


class _Query(Input):
    ids = QueryIdentifiers(maximum=50)
    search = Text()


def test_what_is_done_to_one_query_does_not_change_the_next_equal_one() -> None:
    schema, request = _Query(), make_mocked_request("GET", f"/list?ids={ID}")
    first = read_query(schema, request)
    first["ids"].clear()
    first["other"] = 1
    second = read_query(schema, make_mocked_request("GET", f"/other?ids={ID}"))
    assert {name: list(map(str, value)) for name, value in second.items()} == {"ids": [ID]}


def test_long_queries_are_read_too() -> None:
    query = "&".join(f"ids={number:024x}" for number in range(1, 21))
    assert len(read_query(_Query(), make_mocked_request("GET", f"/list?{query}"))["ids"]) == 20


def test_texts_and_unknown_parameters_are_not_remembered() -> None:
    """They may be names of clients or tokens of links."""
    schema = _Query()
    for query in ("search=Ana", f"ids={ID}&search=Ana", "token=secret"):
        before = _load_cached.cache_info().currsize
        read_query(schema, make_mocked_request("GET", f"/list?{query}"))
        assert _load_cached.cache_info().currsize == before
    read_query(schema, make_mocked_request("GET", f"/list?ids={ID}"))
    assert _load_cached.cache_info().currsize == before + 1
