"""Search fields of page queries."""

from __future__ import annotations

import unicodedata
from typing import Any

from coaching_service.core.validation import Text


class Keywords(Text):
    """Search text from a URL: truncated to the maximum length, control characters become spaces; never rejected."""

    def __init__(self) -> None:
        super().__init__(allow_blank=True, load_default="")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = "".join(" " if unicodedata.category(char) == "Cc" else char for char in str(value))
        return super()._deserialize(text.strip()[: self.max_length], attr, data, **kwargs)
