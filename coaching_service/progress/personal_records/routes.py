"""Personal records over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, LegacyFailure, NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.progress.personal_records import models, service

routes = Routes(
    "/coach/customers/{customerId}/personal-records",
    tag="Personal records",
    locks="customer",
    path_descriptions={"recordId": "The identifier of the personal record."},
)

own_routes = Routes("/customer/personal-records", tag="The client's own")

# The specification documents a malformed identifier here as a 500.
_MALFORMED = {"recordId": ("PERSONAL_RECORD_ID_INVALID", "The personal record's identifier is malformed")}


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=list_of(models.PERSONAL_RECORD))
async def list_personal_records(ctx: Context, customer_id: ObjectId) -> list[models.PersonalRecord]:
    """List a client's personal records.

    Those entered by a coach, and the best of each exercise and type that was logged (`source`).
    """
    return await service.list_records(ctx, customer_id)


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=models.NEW_PERSONAL_RECORD(),
    returns=models.PERSONAL_RECORD,
    errors=(NotFound,),
    example={
        "exerciseId": "66f0c0ffee0000000000abcd",
        "type": "heaviest_load",
        "value": 120,
        "reps": 1,
        "date": "2026-03-02",
    },
)
async def create_personal_record(
    ctx: Context, customer_id: ObjectId, body: models.NewPersonalRecord
) -> models.PersonalRecord:
    """Enter a personal record."""
    return await service.create(ctx, customer_id, body)


@routes.get(
    "/{recordId}",
    access=coach(CUSTOMERS.VIEW),
    returns=models.PERSONAL_RECORD,
    errors=(LegacyFailure,),
    legacy_id_errors=_MALFORMED,
)
async def get_personal_record(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> models.PersonalRecord:
    """Read a personal record of a client.

    A malformed identifier is 500 with `code` PERSONAL_RECORD_ID_INVALID.
    """
    return await service.get(ctx, customer_id, record_id)


@routes.patch(
    "/{recordId}",
    access=coach(CUSTOMERS.EDIT),
    body=patch_of(input_of(models.RecordDetails), name="PersonalRecordChange"),
    returns=models.PERSONAL_RECORD,
    errors=(LegacyFailure, Conflict),
    legacy_id_errors=_MALFORMED,
    example={"value": 122.5, "version": 0},
)
async def update_personal_record(
    ctx: Context, customer_id: ObjectId, record_id: ObjectId, body: models.RecordChange
) -> models.PersonalRecord:
    """Change a personal record that was entered by a coach.

    One derived from a log is 409; a malformed identifier is 500 with `code` PERSONAL_RECORD_ID_INVALID.
    """
    return await service.update(ctx, customer_id, record_id, body)


@routes.delete(
    "/{recordId}", access=coach(CUSTOMERS.EDIT), errors=(LegacyFailure, Conflict), legacy_id_errors=_MALFORMED
)
async def delete_personal_record(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> None:
    """Delete a personal record that was entered by a coach.

    One derived from a log is 409; a malformed identifier is 500 with `code` PERSONAL_RECORD_ID_INVALID.
    """
    await service.delete(ctx, customer_id, record_id)


@own_routes.get("", access=customer(), returns=list_of(models.PERSONAL_RECORD))
async def list_own_personal_records(ctx: Context) -> list[models.PersonalRecord]:
    """List my personal records.

    Those entered by a coach, and the best of each exercise and type that was logged (`source`).
    """
    return await service.list_records(ctx, ctx.caller.id)
