"""What the answer to a form says if the document it concerns is gone, in words for coaches or for clients."""

from __future__ import annotations

from coaching_service.core.errors import NotFound

_WORKOUT_CODES = frozenset({"WORKOUT_BLOCK_NOT_FOUND", "WORKOUT_ITEM_NOT_FOUND"})


def describe_missing(path: str, error: NotFound) -> str:
    """Return the message of an error that a form at `path` caused.

    What a client cannot see need not be deleted: the coach may have hidden its day.
    """
    if not path.startswith("/train/"):
        return f"{error.message}: it has been deleted. Nothing was changed, and your entries are still here."
    subject = "This workout" if error.code in _WORKOUT_CODES else "This"
    return f"{subject} is no longer available. Ask your coach."
