"""The JSON of responses."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from bson import ObjectId

from coaching_service.core.http.responses import to_json

ID = "65f000000000000000000a01"
AT = datetime.fromisoformat("2026-03-02T07:05:00.042")  # stored times have no zone


def test_identifiers_times_and_sets_have_a_form() -> None:
    value = {"_id": ObjectId(ID), "at": AT, "groups": {"b", "a"}}
    assert to_json(value) == f'{{"_id":"{ID}","at":"2026-03-02T07:05:00.042Z","groups":["a","b"]}}'.encode()
    assert to_json([frozenset({2, 1}), None, 1.5, "é"]) == '[[1,2],null,1.5,"é"]'.encode()


@pytest.mark.parametrize("value", [{1: "a"}, {ObjectId(ID): 1}, {None: 1}, {date(2026, 3, 2): 1}, [object()]])
def test_other_keys_and_types_have_none(value: object) -> None:
    with pytest.raises(TypeError):
        to_json(value)
