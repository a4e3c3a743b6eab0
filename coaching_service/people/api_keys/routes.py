"""API keys over REST: an interactive session only."""

from __future__ import annotations

from coaching_service.core.auth.access import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people.api_keys import service
from coaching_service.people.api_keys.models import ApiKey, CreatedApiKey, NewApiKey, RevealedKey

routes = Routes("/coach/api-keys", tag="API keys", path_descriptions={"keyId": "The identifier of the API key."})


@routes.get("", access=session_only())
async def list_api_keys(ctx: Context) -> list[ApiKey]:
    """List the keys.

    The caller's own; for the owner, all of the company.
    """
    return await service.list_keys(ctx)


@routes.post(
    "",
    access=session_only(),
    returns=output_of(CreatedApiKey, output_of(ApiKey)),
    example={"name": "Our backend", "restrictions": {"readOnly": True}},
)
async def create_api_key(ctx: Context, body: NewApiKey) -> CreatedApiKey:
    """Create a key.

    It acts as the caller, narrowed by `restrictions`. The secret can be read again by `reveal`.
    """
    return await service.create(ctx, body["name"], body["restrictions"])


@routes.get("/{keyId}/reveal", access=session_only())
async def reveal_api_key(ctx: Context, key_id: ObjectId) -> RevealedKey:
    """Read a key's secret again.

    Reading it is recorded in the audit log.
    """
    return {"key": await service.reveal(ctx, key_id)}


@routes.delete("/{keyId}", access=session_only())
async def delete_api_key(ctx: Context, key_id: ObjectId) -> None:
    """Revoke a key.

    It fails from the next request on, on every process.
    """
    await service.revoke(ctx, key_id)
