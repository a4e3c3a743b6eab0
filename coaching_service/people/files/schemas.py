"""What the file links read."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Input


class LinkQuery(Input):
    """What a signed link carries."""

    expires = fields.String(load_default="")
    signature = fields.String(load_default="")
