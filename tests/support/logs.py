"""The log of the service during a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from structlog.testing import capture_logs


@contextmanager
def recorded_logs() -> Iterator[list[Any]]:
    """The log entries of every level: the suite as a whole logs almost nothing."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    with capture_logs() as entries:
        yield entries
    structlog.configure(**before)
