"""How much is tried of what a run of all tests only samples; `scripts/test --proofs` runs each file that imports this.

See docs/decisions/sampled-tests.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

MORE = int(os.environ.get("MORE_EXAMPLES", "1"))  # scripts/test --proofs sets it
T = TypeVar("T")
# Of a test that runs in the proofs, or when its name is given: `scripts/test FILE::TEST`, or with -k.
proof = pytest.mark.proof


def some(values: Sequence[T], count: int) -> Sequence[T]:
    """Return at most so many values, evenly spread, and in the proofs all of them."""
    return values[:: -(-len(values) // count)] if MORE == 1 else values
