"""Requests and responses of a client's own profile."""

from __future__ import annotations

from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.validation import DateTime, Output
from coaching_service.people.customers.own_models import OwnRecord
from coaching_service.people.own_profile import models

OwnDetails = input_of(OwnRecord, name="OwnDetails")


class ErasureRequest(Output):
    """A client's request for the erasure of their data."""

    erasureRequestedAt = DateTime(metadata={"description": "When the client asked for it first."})


OwnProfile = output_of(models.OwnProfile)
