"""Queries of pages: search fields, filters and the part of a list, and the URLs of lists with them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias, TypedDict
from urllib.parse import urlencode

from marshmallow import fields
from marshmallow.validate import Regexp

from coaching_service.core.fields import Default
from coaching_service.core.validation import Integer, Text

# The values of a filter, any of which matches; without a value everything does.
FilterValues: TypeAlias = Annotated[list[str], fields.List(fields.String()), Default(list)]


class Keywords(Text):
    """Search text from a URL: truncated to the maximum length, control characters become spaces; never rejected."""

    def __init__(self) -> None:
        super().__init__(allow_blank=True, load_default="")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = "".join(" " if unicodedata.category(char) == "Cc" else char for char in str(value))
        return super()._deserialize(text.strip()[: self.max_length], attr, data, **kwargs)


class KeywordQuery(TypedDict):
    """What is searched in a list."""

    keywords: Annotated[str, Keywords()]


class PageQuery(TypedDict):
    """The page of a list to show."""

    page: Annotated[int, Integer(minimum=1), Default(1)]


class PartQuery(TypedDict):
    """A part of a list: `after` is the cursor of the one before."""

    after: Annotated[str | None, fields.String()]


class Search(KeywordQuery, PageQuery):
    """What is searched in a list, and the page of the results to show."""


class MonthQuery(TypedDict):
    """`month` is `YYYY-MM`; without it the page chooses one."""

    month: Annotated[str | None, Text(validate=Regexp("(19|20|21)\\d\\d-(0[1-9]|1[0-2])\\Z"))]


class ReturnTo(TypedDict):
    """`next` is the page to return to."""

    next: Annotated[str | None, fields.String()]


def list_url(path: str, query: Mapping[str, object], **defaults: object) -> Callable[..., str]:
    """Return a function for templates that returns the URL of a list with some parameters of `query` changed.

    Empty parameters, defaults and the first page are left out: `list_url("/app/programs", query)(page=2)`.
    """
    defaults = {"page": 1, **defaults}

    def build_url(**changes: Any) -> str:
        parameters = {
            name: "true" if value is True else value
            for name, value in {**query, **changes}.items()
            if value and value != defaults.get(name)
        }
        return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path

    return build_url
