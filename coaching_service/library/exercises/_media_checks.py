"""Links of exercises and of overrides in an import."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from coaching_service.core.validation import Link

MEDIA_CHECKS: dict[str, fields.Field[Any]] = {
    "videoLink": Link(),
    "media.url": Link(),
    "media.thumbnailUrl": Link(),
}
