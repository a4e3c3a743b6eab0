"""An operator for the tests of commands."""

from __future__ import annotations

from tests.support.commands import operator

__all__ = ["operator"]
