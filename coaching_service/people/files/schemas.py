"""Requests of the file downloads."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Input


class LinkQuery(Input):
    """The query of a signed link."""

    expires = fields.String(load_default="")
    signature = fields.String(load_default="")
