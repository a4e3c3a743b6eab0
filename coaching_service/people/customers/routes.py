"""Clients over REST."""

from __future__ import annotations

from typing import cast

from coaching_service.core.auth import CUSTOMERS, coach, coach_with_any
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.external_identity import ExternalId, Upserted
from coaching_service.core.fields import input_of
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import Page, page_of, part_of
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import DryRun, complete_upsert, patch_of, upsert_of
from coaching_service.people.customers import batch, models, service
from coaching_service.people.customers.models import CustomerBatch, CustomerBatchResult, parse_trainers

routes = Routes("/coach/customers", tag="Customers")


@routes.get(
    "",
    access=coach(CUSTOMERS.VIEW),
    query=models.CUSTOMER_QUERY(),
    returns=page_of(models.CUSTOMER),
    on_worker_thread=True,
    selects_fields=True,
)
async def list_customers(ctx: Context, query: models.CustomerQuery) -> Page[models.CustomerProfile]:
    """List clients.

    Sorted by name, surname and identifier, without regard to case and accents, unless `sort` says otherwise. Filters
    combine with AND.
    """
    return await service.list_customers(
        ctx,
        archived=query["archived"],
        contains=query.get("contains", ""),
        groups=query.get("groups"),
        trainers=parse_trainers(query.get("assignedTo")),
        email=query.get("email"),
        external_id=query.get("externalId"),
        **part_of(query),
    )


@routes.post(
    "",
    access=coach(CUSTOMERS.CREATE),
    body=models.NEW_CUSTOMER(),
    returns=models.CREATED_CUSTOMER,
    errors=(NotFound,),
    example={"name": "Ana", "surname": "Flores", "email": "ana@example.com", "sendInvitation": False},
)
async def create_customer(ctx: Context, body: models.NewCustomer) -> models.CreatedCustomer:
    """Create a client.

    With an `email`, an invitation is sent unless `sendInvitation` is false. Two clients may share an e-mail address.
    """
    return await batch.create_customer(ctx, body, send_invitation=body["sendInvitation"])


@routes.post(
    "/batch",
    access=coach_with_any(CUSTOMERS.CREATE, CUSTOMERS.EDIT),
    status=200,
    body=input_of(CustomerBatch, DryRun)(),
    rolls_back=True,
    rejects_unknown_fields=True,
    request_class="bulk",
    example={"customers": [{"name": "Ana", "surname": "Flores", "externalId": "crm:1042"}, {"name": "Bo"}]},
)
async def create_customers(ctx: Context, body: CustomerBatch) -> CustomerBatchResult:
    """Create or change up to 500 clients.

    A client is created for every valid entry, whatever the others are; all of them or, if the request fails, none. An
    entry that repeats an earlier one is not valid: its `externalId` or, without one, name, surname and e-mail address.
    With `onConflict: update` the client who has the `externalId` of an entry gets the fields that are sent, and no
    others: `name` may be missing then, and who is archived stays archived unless `archived` is false. It needs
    `customers.edit`, and `customers.create` if an entry is new. Unknown fields are 400. No mail is sent unless
    `sendInvitation` is true, and no first-access tokens are returned.
    """
    return await batch.save_and_compare(ctx, body["customers"], body["onConflict"])


@routes.get("/groups", access=coach(CUSTOMERS.VIEW))
async def list_customer_groups(ctx: Context) -> list[models.CustomerGroup]:
    """List the groups in use.

    Archived clients are counted too.
    """
    return await service.list_groups(ctx)


@routes.put(
    "/archive",
    access=coach(CUSTOMERS.EDIT),
    returns=models.CUSTOMER,
    errors=(NotFound, Conflict),
    example={"id": "66f0c0ffee0000000000abcd"},
)
async def archive_customer(ctx: Context, body: models.CustomerReference) -> models.CustomerProfile:
    """Archive a client.

    Repeating is harmless.
    """
    return await service.set_archived(ctx, body["id"], archived=True, version=body.get("version"))


@routes.put(
    "/unarchive",
    access=coach(CUSTOMERS.EDIT),
    returns=models.CUSTOMER,
    errors=(NotFound, Conflict),
    example={"id": "66f0c0ffee0000000000abcd"},
)
async def unarchive_customer(ctx: Context, body: models.CustomerReference) -> models.CustomerProfile:
    """Restore an archived client.

    Repeating is harmless.
    """
    return await service.set_archived(ctx, body["id"], archived=False, version=body.get("version"))


@routes.put(
    "/by-external-id/{externalId}",
    access=coach_with_any(CUSTOMERS.CREATE, CUSTOMERS.EDIT),
    path_fields={"externalId": ExternalId()},
    body=upsert_of(models.UPSERTED_CUSTOMER, name="CustomerUpsert"),
    returns=models.CUSTOMER,
    errors=(NotFound,),
    rolls_back=True,
    example={"name": "Ana", "surname": "Flores"},
)
async def upsert_customer(ctx: Context, external_id: str, body: models.CustomerUpsert) -> Upserted:
    """Create or change the client with an external identifier.

    201 if it is new, as created by POST but without a first-access token; otherwise 200, as changed by PATCH,
    and unchanged if it has all of it already. It needs the permission of what it does. `sendInvitation` only applies to
    a new client.
    """
    change = {name: value for name, value in body.items() if name != "sendInvitation"}
    return await batch.upsert_external(
        ctx,
        external_id,
        cast("models.CustomerChange", change),
        lambda: complete_upsert(models.UPSERTED_CUSTOMER(), body),
    )


@routes.patch(
    "/{customerId}",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    body=patch_of(models.CUSTOMER_UPDATE, name="CustomerChange"),
    returns=models.CUSTOMER,
    example={"phone": "+34 600 000 000", "groups": ["Morning"], "version": 0},
)
async def update_customer(ctx: Context, customer_id: ObjectId, body: models.CustomerChange) -> models.CustomerProfile:
    """Change a client.

    Only the fields sent are changed; null clears a field.
    """
    return await service.update(ctx, customer_id, body)


@routes.put(
    "/{customerId}/profile-photo",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    multipart=MultipartBody("profilePhotoFile", IMAGE_TYPES, models.ProfilePhotoFields),
    body_optional=True,
    returns=models.CUSTOMER,
    example={},
)
async def set_profile_photo(
    ctx: Context, customer_id: ObjectId, body: models.ProfilePhotoFields, file: StoredFile | None
) -> models.CustomerProfile:
    """Set a client's profile photo.

    Without a file nothing changes.
    """
    return await service.set_profile_photo(ctx, customer_id, file, body.get("version"))


@routes.delete("/{customerId}", access=coach(CUSTOMERS.DELETE), locks="customer")
async def delete_customer(ctx: Context, customer_id: ObjectId) -> None:
    """Erase a client.

    The client is deleted at once; the rest of the client's data is then erased in the background.
    """
    await service.erase(ctx, customer_id)
