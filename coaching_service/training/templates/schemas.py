"""The query of the list of workout templates."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.list_selection import UpdatedSince


class TemplateQuery(UpdatedSince):
    """The filters of the template list."""

    type = fields.String(metadata={"description": "Exactly this type."})
    tag = fields.String(metadata={"description": "Exactly this tag."})
    q = fields.String(metadata={"description": "Every word must occur in name or tags."})
