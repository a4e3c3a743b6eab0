"""Programs, their blocks and items over REST."""

from __future__ import annotations

from coaching_service.core.auth import PROGRAMS, coach, coach_with_any
from coaching_service.core.database.context import Context
from coaching_service.core.external_identity import ExternalId, IdentityFields, Upserted
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import Page, page_of, part_of
from coaching_service.core.validation import complete_upsert, patch_of, upsert_of
from coaching_service.training.programs import models, service
from coaching_service.training.programs import schemas as program_schemas
from coaching_service.training.programs.models import ProgramBlockFields
from coaching_service.training.workouts.blocks.models import BlockPosition
from coaching_service.training.workouts.shared_routes import BlockRoutes

routes = Routes("/coach/programs", tag="Programs")


@routes.get(
    "",
    access=coach(PROGRAMS.VIEW),
    query=program_schemas.ProgramQuery(),
    returns=page_of(program_schemas.Program),
    selects_fields=True,
)
async def list_programs(ctx: Context, query: models.ProgramQuery) -> Page[models.Program]:
    """List programs by name."""
    return await service.list_page(
        ctx,
        archived=query["archived"],
        keywords=query.get("keywords", ""),
        external_id=query.get("externalId"),
        **part_of(query),
    )


@routes.post(
    "",
    access=coach(PROGRAMS.CREATE),
    body=program_schemas.NewProgram(),
    returns=program_schemas.Program,
    example={"name": "First twelve weeks", "description": "Three days a week", "tags": ["beginner"]},
)
async def create_program(ctx: Context, body: models.ProgramInput) -> models.Program:
    """Create a program."""
    return await service.create(ctx, body)


@routes.put(
    "/by-external-id/{externalId}",
    access=coach_with_any(PROGRAMS.CREATE, PROGRAMS.EDIT),
    path_fields={"externalId": ExternalId()},
    body=upsert_of(program_schemas.NewProgram, name="ProgramUpsert"),
    returns=program_schemas.Program,
    rolls_back=True,
    example={"name": "First twelve weeks", "tags": ["beginner"]},
)
async def upsert_program(ctx: Context, external_id: str, body: models.ProgramChange) -> Upserted:
    """Create or change the program with an external identifier.

    201 if it is new; otherwise 200, as changed by PATCH, and unchanged if it has all of it already. It needs the
    permission of what it does.
    """
    return await service.upsert_external(
        ctx, external_id, body, lambda: complete_upsert(program_schemas.NewProgram(), body)
    )


@routes.get(
    "/by-external-id/{externalId}",
    access=coach(PROGRAMS.VIEW),
    path_fields={"externalId": ExternalId()},
    returns=program_schemas.Program,
    selects_fields=True,
)
async def get_program_by_external_id(ctx: Context, external_id: str) -> models.Program:
    """Read the program with an external identifier."""
    return await service.get_by_external_id(ctx, external_id)


@routes.get("/{programId}", access=coach(PROGRAMS.VIEW), returns=program_schemas.Program, selects_fields=True)
async def get_program(ctx: Context, program_id: ObjectId) -> models.Program:
    """Read a program."""
    return await service.get(ctx, program_id)


@routes.patch(
    "/{programId}",
    access=coach(PROGRAMS.EDIT),
    locks="program",
    body=patch_of(program_schemas.NewProgram, name="ProgramChange"),
    returns=program_schemas.Program,
    example={"tags": ["strength"], "version": 0},
)
async def update_program(ctx: Context, program_id: ObjectId, body: models.ProgramChange) -> models.Program:
    """Change a program."""
    return await service.update(ctx, program_id, body)


@routes.delete("/{programId}", access=coach(PROGRAMS.DELETE), locks="program")
async def delete_program(ctx: Context, program_id: ObjectId) -> None:
    """Delete a program with its blocks.

    Blocks that were assigned from it remain on the clients' calendars.
    """
    await service.delete(ctx, program_id)


@routes.put(
    "/{programId}/archive",
    access=coach(PROGRAMS.EDIT),
    locks="program",
    body_optional=True,
    returns=program_schemas.Program,
    example={},
)
async def archive_program(ctx: Context, program_id: ObjectId, body: models.VersionReference) -> models.Program:
    """Archive a program.

    Repeating is harmless.
    """
    return await service.set_archived(ctx, program_id, archived=True, version=body.get("version"))


@routes.put(
    "/{programId}/unarchive",
    access=coach(PROGRAMS.EDIT),
    locks="program",
    body_optional=True,
    returns=program_schemas.Program,
    example={},
)
async def unarchive_program(ctx: Context, program_id: ObjectId, body: models.VersionReference) -> models.Program:
    """Restore an archived program.

    Repeating is harmless.
    """
    return await service.set_archived(ctx, program_id, archived=False, version=body.get("version"))


block_routes = Routes("/coach/programs/{programId}", tag="Program workouts", locks="program")

BlockRoutes(
    routes=block_routes,
    owner=service.ProgramPlan,
    owner_parameter="program_id",
    view=coach(PROGRAMS.VIEW),
    edit=coach(PROGRAMS.EDIT),
    range_query=program_schemas.DayRange(),
    range_names=("startDay", "endDay"),
    new_block=program_schemas.NewProgramBlock(),
    block_change=patch_of(
        input_of(ProgramBlockFields, IdentityFields), input_of(BlockPosition), name="ProgramBlockChange"
    ),
    copy_target=program_schemas.ProgramBlockCopy(),
    block_example={"name": "Full body A", "day": 1},
).declare()
