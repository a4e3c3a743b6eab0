"""URLs of lists with filters and pages, and of the pages that forms return to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypedDict
from urllib.parse import urlencode

from marshmallow import fields


class ReturnTo(TypedDict):
    """`next` is the page to return to."""

    next: Annotated[str | None, fields.String()]


def list_url(path: str, query: Mapping[str, object]) -> Callable[..., str]:
    """Return a function for templates that returns the URL of a list with some parameters of `query` changed.

    Empty parameters and the first page are omitted: `list_url("/app/programs", query)(page=2)`.
    """

    def build_url(**changes: Any) -> str:
        parameters = {
            name: value for name, value in {**query, **changes}.items() if value and not (name == "page" and value == 1)
        }
        return f"{path}?{urlencode(parameters)}" if parameters else path

    return build_url
