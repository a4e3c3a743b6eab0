"""Limits of messages."""

from __future__ import annotations

MAX_TEXT_LENGTH = 5_000  # characters
MAX_ATTACHMENTS = 3
