"""What the account operations read and answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.kernel.validation import Answer, Choice, Email, Identifier


class Me(Answer):
    """The one asking."""

    _id = Identifier()
    name = fields.String()
    email = Email(allow_none=True)
    role = Choice("OWNER", "EMPLOYEE", "CUSTOMER")
    companyId = Identifier()
    permissions = fields.List(
        fields.String(), metadata={"description": "`area.action`, e.g. `customers.view`, as this credential has them."}
    )
    via = Choice("session", "apiKey")
