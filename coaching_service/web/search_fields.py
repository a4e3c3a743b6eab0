"""What is searched for, as it is typed into an address."""

from __future__ import annotations

import unicodedata
from typing import Any

from coaching_service.core.validation import Text


class Keywords(Text):
    """Words to search for: cut where they are too long, without control characters, so that no search is dropped."""

    def __init__(self) -> None:
        super().__init__(allow_blank=True, load_default="")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        seen = "".join(" " if unicodedata.category(each) == "Cc" else each for each in str(value))
        return super()._deserialize(seen.strip()[: self.max_length], attr, data, **kwargs)
