"""Connected assistants and applications over REST: an interactive session only."""

from __future__ import annotations

from coaching_service.core.auth import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import output_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.assistants import service
from coaching_service.people.assistants.service import ApplicationGrant, Grant

routes = Routes(
    "/coach/assistants",
    tag="Assistants",
    path_descriptions={"assistantId": "The identifier of the connected assistant."},
)


@routes.get("", access=session_only(), returns=list_of(output_of(Grant, name="Assistant")))
async def list_assistants(ctx: Context) -> list[Grant]:
    """List the connected assistants.

    Those that the caller has connected; for the owner, all of the company.
    """
    return await service.list_assistants(ctx)


@routes.delete("/{assistantId}", access=session_only())
async def disconnect_assistant(ctx: Context, assistant_id: ObjectId) -> None:
    """Disconnect an assistant.

    Its tokens fail from the next request.
    """
    await service.revoke(ctx, assistant_id)


# --- Applications over REST -------------------------------------------------------------------------------------------


application_routes = Routes(
    "/coach/applications",
    tag="Applications",
    path_descriptions={"grantId": "The identifier of the application's access."},
)


@application_routes.get("", access=session_only(), returns=list_of(output_of(ApplicationGrant, name="Application")))
async def list_applications(ctx: Context) -> list[ApplicationGrant]:
    """List the applications that may use REST.

    Those that the caller has allowed; for the owner, all of the company.
    """
    return await service.list_applications(ctx)


@application_routes.delete("/{grantId}", access=session_only())
async def revoke_application(ctx: Context, grant_id: ObjectId) -> None:
    """Revoke the access of an application.

    Its tokens fail from the next request.
    """
    await service.revoke_application(ctx, grant_id)
