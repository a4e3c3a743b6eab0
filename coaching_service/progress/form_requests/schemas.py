"""Requests and responses of the pending forms."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.pagination import CursorQuery
from coaching_service.core.query import QueryBoolean
from coaching_service.core.validation import Date, Identifier, Output
from coaching_service.people.customers.schemas import NamedCustomer


class FormRequestQuery(CursorQuery):
    """Filters of the pending forms; they combine with AND."""

    overdue = QueryBoolean(metadata={"description": "`true`: only requests of past dates; `false`: only the others."})
    customerId = Identifier(metadata={"description": "Only forms of this client."})


class FormRequest(Output):
    """A scheduled form that the client has not answered."""

    customer = fields.Nested(NamedCustomer, metadata={"description": "The client."})
    formId = Identifier(allow_none=True, metadata={"description": "null if the form was made for the workout item."})
    formName = fields.String(metadata={"description": "The name of the form."})
    date = Date(metadata={"description": "The date it is scheduled for."})
    wblockId = Identifier(metadata={"description": "The workout block it is in."})
    witemId = Identifier(metadata={"description": "The item with the form."})
    isOverdue = fields.Boolean(metadata={"description": "The date is before the client's today."})
