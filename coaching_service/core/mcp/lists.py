"""Lists as assistants read them: a title that says where the list continues, and a line for each entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import Arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.validation import Integer, Text

_MAX_CURSOR, _MAX_LIMIT, _DEFAULT_LIMIT = 2_000, 100, 20
_MAX_TEXT = 600
_NUMBERED, _BY_CURSOR = ("totalDocs", "nextPage"), ("nextCursor",)


class ListedLine(TypedDict):
    """An entry of a list as a line of text, and its identifier if other tools take it."""

    _id: NotRequired[ObjectId]
    line: str


class Extent(TypedDict):
    """What a list is about; with numbered pages how many entries there are, and the next page if there is one."""

    summary: str
    totalDocs: NotRequired[int]
    nextPage: NotRequired[int]


class Lines(TypedDict):
    """A list that is returned as a whole."""

    summary: str
    docs: list[ListedLine]


class PageOfLines(Extent):
    """A page of a list."""

    docs: list[ListedLine]


class PageWithHint(PageOfLines):
    """A page of a list, and what else to look for."""

    hint: NotRequired[str]


class PartOfLines(Lines):
    """A part of a list, and the cursor of the next one if there is one."""

    nextCursor: NotRequired[str]


class PartWithHint(PartOfLines):
    """A part of a list, and what else to look for."""

    hint: NotRequired[str]


class ToolPart(Arguments):
    """`limit` (1 to 100, by default 20) entries of a list, after a cursor."""

    limit = Integer(
        minimum=1,
        maximum=_MAX_LIMIT,
        load_default=_DEFAULT_LIMIT,
    )
    after = Text(
        max_length=_MAX_CURSOR,
        load_default=None,
        allow_none=True,
        metadata={"description": "nextCursor of the part before."},
    )


def list_answer(
    title: str,
    page: Mapping[str, Any],
    lines: Sequence[str],
    *,
    ids: Sequence[ObjectId | None] | None = None,
    hint: str = "",
) -> Answer:
    """Return a page or part of a list: `lines` are the texts of its `docs`, `ids` those they have in brackets.

    `page` has numbered pages or a cursor. The data has the same lines, with the identifiers apart.
    """
    text = [f"{title}: {_describe_extent(page)}", *lines, *([hint] if hint else [])]
    docs = [_list_line(line, _id) for line, _id in zip(lines, ids or [None] * len(lines), strict=True)]
    return Answer("\n".join(text), {**describe_list(title, page, hint), "docs": docs})


def describe_list(title: str, page: Mapping[str, Any], hint: str = "") -> dict[str, object]:
    """Return what the data of a list says of all of it."""
    names = _BY_CURSOR if "hasMore" in page else _NUMBERED
    known = {name: page[name] for name in names if page.get(name) is not None}
    return {"summary": title, **known, **({"hint": hint} if hint else {})}


def _list_line(line: str, _id: ObjectId | None) -> ListedLine:
    return {"line": line} if _id is None else {"_id": _id, "line": line.replace(f" [{_id}]", "", 1)}


def _describe_extent(page: Mapping[str, Any]) -> str:
    shown = len(page["docs"])
    if "hasMore" in page:
        more = f"; more with after {page['nextCursor']}" if page.get("nextCursor") else "; more" * page["hasMore"]
        return (str(shown) if shown else "none") + more
    total = page.get("totalDocs", shown)
    more = f"; shown {shown}, more on page {page['nextPage']}" if page["hasNextPage"] else ""
    return (str(total) if total else "none") + more


def join_facts(*facts: object) -> str:
    """Return the facts of a line that are known, separated by semicolons; what is empty or None is not."""
    return "; ".join(str(fact) for fact in facts if fact)


def typed_line(text: str, longest: int = _MAX_TEXT) -> str:
    """Return a text that a person typed in one line, marked as data; what is longer than `longest` is cut off."""
    line = " ".join(text.split())
    return typed(line if len(line) <= longest else f"{line[: longest - 1]}…")


def format_time(time: datetime) -> str:
    """Return a stored time (UTC) to the minute."""
    return f"{time:%Y-%m-%d %H:%M}Z"


def format_figure(value: float | None, unit: str = "") -> str:
    """Return a figure without unnecessary decimals, or `-` for None."""
    return "-" if value is None else f"{round(value, 2):.15g}{unit}"  # without an exponent
