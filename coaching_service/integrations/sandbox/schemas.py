"""Responses of the sandbox operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import DateTime, Identifier, Output


class Sandbox(Output):
    """A company for tests."""

    companyId = Identifier(metadata={"description": "The sandbox, which is a company of its own."})
    apiKey = fields.String(metadata={"description": "A key of its owner; it begins with `cs_test_`."})


class SandboxMail(Output):
    """A mail that would have been sent."""

    _id = Identifier()
    to = fields.String(metadata={"description": "The address of the recipient."})
    subject = fields.String(metadata={"description": "The subject."})
    text = fields.String(metadata={"description": "The text, with the links and tokens that it contains."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
