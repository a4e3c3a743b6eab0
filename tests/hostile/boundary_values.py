"""The values at the bounds of each declared field, and bodies in which all fields have one at the same time."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zlib import crc32

from marshmallow import Schema, ValidationError, fields

from coaching_service.core.fields import ChangeByStoredType, Variant
from coaching_service.core.validation import (
    Boolean,
    Choice,
    Date,
    Email,
    Identifier,
    Integer,
    Link,
    Number,
    Text,
    TimeOfDay,
    Timezone,
    field_errors,
)
from tests.hostile.cases import SAMPLES, Leaf, complete, leaves_of
from tests.support.sampled import MORE

TODAY = datetime.now(UTC).date()
# Each is sent until one is accepted: the bound that is declared lies between two of them.
EARLY = ["0001-01-01", "1900-01-01", "1950-01-01", str(TODAY - timedelta(days=700)), str(TODAY)]
LATE = ["9999-12-31", "2199-12-31", str(TODAY + timedelta(days=3650)), str(TODAY + timedelta(days=1800)), str(TODAY)]
MOST_CHOICES = 4
_WORDS = (
    "\u05e0\u05d5\u05e2\u05d4 \u0644\u064a\u0644\u0649",  # right to left
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f4\U000e0067\U000e0062\U000e007f",  # joined and tagged pictures
    "\uff1d\uff21\uff11\uff0b\uff11",  # full width
    "'; \\\"<b>&amp; \u00ab\u00bb |\u2028x: 5x5",
    "a\u0301" * 20,
)
_CATEGORIES = ("Zl", "Zp", "Cc", "Cf")


@cache
def odd_texts() -> tuple[str, ...]:
    """Texts of at most 90 characters with each character that ends a line, is a control or has no glyph."""
    odd = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) in _CATEGORIES]
    accepted = [each for each in odd if _is_accepted(Text(max_length=10_000), f"a{each}b")]
    parts = ["a" + "b".join(accepted[start : start + 40]) + "c" for start in range(0, len(accepted), 40)]
    return (*_WORDS, *parts)


def _is_accepted(field: fields.Field[Any], value: Any) -> bool:
    try:
        field.deserialize(value)
    except ValidationError:
        return False
    return True


def values_of(field: fields.Field[Any], sample: int | None = None) -> list[Any]:
    """The values at the bounds of a field; a list of alternatives has those to try after the first is refused.

    With the number of a sample, a text has two of the odd texts, and a choice at most MOST_CHOICES values.
    """
    values: list[Any] = []
    if isinstance(field, Identifier):
        return []
    if isinstance(field, Choice):
        values = list(field.choices)
        if sample is not None:
            step = -(-len(values) // MOST_CHOICES)
            values = values[sample % step :: step]
    elif isinstance(field, Date):
        values = [EARLY, LATE]
    elif isinstance(field, (TimeOfDay, Timezone, Email, Link)):
        values = {
            TimeOfDay: ["00:00", "23:59"],
            Timezone: ["Pacific/Kiritimati", "Pacific/Pago_Pago"],
            Email: [f"{'a' * 60}@{'b' * 60}.{'c' * 60}.example"],
            Link: [f"https://example.com/{'a' * 1900}"],
        }[next(kind for kind in (TimeOfDay, Timezone, Email, Link) if isinstance(field, kind))]
    elif isinstance(field, Text):
        longest = ["\u00fc" * field.max_length, "x" * field.max_length]
        odd = odd_texts() if sample is None else [odd_texts()[(sample + each) % len(odd_texts())] for each in (0, 5)]
        values = [longest, *([each, _WORDS[0]] for each in odd)]
    elif isinstance(field, (Number, Integer)):
        low = [-1e300, -(10**9)] if field.minimum is None else [field.minimum]
        values = [[*low, 0, 1], [field.maximum, 1000, 100, 10, 1], [0.1 if isinstance(field, Number) else 1]]
    elif isinstance(field, (Boolean, fields.Boolean)):
        values = [True, False]
    return [*values, *([None] if field.allow_none else [])]


class Attempt:
    """A body of which some fields have a value at a bound; those that are refused are changed for the next time."""

    def __init__(self, schema: Any, example: Any, chosen: Mapping[Leaf, Any], own: Mapping[str, str]) -> None:
        self._schema, self._example, self._own = schema, example, own
        self._chosen = {leaf: list(value) if isinstance(value, list) else [value] for leaf, value in chosen.items()}

    def body(self) -> Any:
        """The body to send: of a schema that is checked here, one that it accepts."""
        for _ in range(8):
            body = deepcopy(self._example)
            for leaf, values in self._chosen.items():
                body = leaf.put_into(body, values[0])
            if isinstance(self._schema, ChangeByStoredType):
                return body
            body = complete(self._schema, body, SAMPLES | dict(self._own))
            try:
                self._schema.load(deepcopy(body))
            except ValidationError as error:
                if not self.refuse([each["field"] for each in field_errors(error)]):
                    return body
            else:
                return body
        return body

    def refuse(self, names: list[str]) -> bool:
        """Take the next value for the fields with these names, or none; returns whether there are such fields."""
        refused = [
            leaf
            for leaf in self._chosen
            if any(_is_below(".".join(map(str, leaf.steps)), name) or leaf.steps[-1] == name for name in names)
        ]
        for leaf in refused:
            self._chosen[leaf] = self._chosen[leaf][1:]
            if not self._chosen[leaf]:
                del self._chosen[leaf]
        return bool(refused)


def _is_below(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.") or name.startswith(f"{path}.")


def attempts(
    schema: Schema | Variant | ChangeByStoredType,
    example: Any,
    own: Mapping[str, str],
    *,
    turn: int = 0,
    every: bool = False,
) -> Iterator[Attempt]:
    """Bodies in which each field has every fourth value of its sample, together with others of the other fields.

    They have every second type of what may be of several, by the number of the turn. The proofs send more: every second
    value, and every type.

    `every`: also each field with each of all its values alone.
    """
    leaves = [leaf for leaf in leaves_of(schema) if leaf.steps[-1] not in ("version", "dryRun")]
    samples = {leaf: crc32(".".join(map(str, leaf.steps)).encode()) for leaf in leaves}
    values = {leaf: values_of(leaf.field, None if every else samples[leaf]) for leaf in leaves}
    kinds = sorted({leaf.variants for leaf in leaves if leaf.variants}, key=str)
    if MORE == 1 and not every:
        kinds = kinds[turn % 2 :: 2] or kinds
    if every:
        for leaf, of_leaf in values.items():
            for value in of_leaf:
                yield Attempt(schema, example, {leaf: value}, own)
    step = 1 if every else 2 if MORE > 1 else 4
    for number in range(max([len(kinds), *(-(-len(of_leaf) // step) for of_leaf in values.values())], default=0)):
        of_kind = [leaf for leaf in leaves if not leaf.variants or leaf.variants == kinds[number % len(kinds)]]
        chosen = {
            leaf: values[leaf][(step * number + position) % len(values[leaf])]
            for position, leaf in enumerate(of_kind)
            if values[leaf]
        }
        yield Attempt(schema, example, chosen, own)


def flatten(value: Any, prefix: str = "") -> dict[str, str]:
    """A JSON object as the fields of a form: `sets.0.load`; a list of texts has one in each line."""
    pairs: dict[str, str] = {}
    for name, each in value.items() if isinstance(value, dict) else enumerate(value):
        key = f"{prefix}{name}"
        if isinstance(each, dict):
            pairs |= flatten(each, f"{key}.")
        elif isinstance(each, list):
            is_table = any(isinstance(entry, dict) for entry in each)
            pairs |= flatten(each, f"{key}.") if is_table else {key: "\n".join(map(str, each))}
        else:
            pairs[key] = "" if each is None else str(each).lower() if isinstance(each, bool) else str(each)
    return pairs
