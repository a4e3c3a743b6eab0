"""The order of the benchmark of peers: where it waits until the service has no background work."""

from __future__ import annotations

import pytest

from benchmarks.peers.__main__ import needs_rest
from benchmarks.peers.report import Comparison


@pytest.mark.parametrize(
    ("previous", "comparison", "expected"),
    [
        (None, ("item", 16), True),
        (("create", 64), ("item", 16), True),
        (("item", 16), ("item", 16), False),
        (("item", 16), ("item", 64), True),
        (("list", 16), ("list", 64), False),
    ],
)
def test_it_rests_before_each_kind_and_each_number_of_connections_of_writes(
    previous: tuple[str, int] | None, comparison: tuple[str, int], expected: bool
) -> None:
    before = None if previous is None else Comparison(*previous)
    assert needs_rest(before, Comparison(*comparison)) is expected
