"""The activity feed: the entries that changes have for a client's feed."""

from __future__ import annotations

from coaching_service.core.changes.store import correct_feed_entry, find_feed_page

__all__ = ["correct_feed_entry", "find_feed_page"]
