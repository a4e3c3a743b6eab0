"""Text as it is compared: without regard to case, accents and the kind of white space."""

from __future__ import annotations

import re
import unicodedata

SUFFIX_LENGTH = 8


def plain(text: str) -> str:
    """`text` folded for comparison: "  José  ÁLVAREZ" is "jose alvarez"."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    bare = "".join(character for character in decomposed if not unicodedata.combining(character))
    return " ".join(bare.split())


def suffixes(*parts: str) -> list[str]:
    """Every ending of each (plain) part, cut to 8 characters: an index of them finds any substring by prefix."""
    return sorted({part[at : at + SUFFIX_LENGTH] for part in parts for at in range(len(part))})


def literal(text: str) -> str:
    """A regular expression that matches `text` itself."""
    return re.escape(text)
