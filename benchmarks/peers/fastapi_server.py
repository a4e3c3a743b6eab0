"""The peer FastAPI: uvicorn with uvloop and httptools, PyMongo's asynchronous API, and pydantic models of the bodies.

It runs in an environment of its own (see install.py) with `python -m benchmarks.peers.fastapi_server`, configured by
MONGODB_URI, MONGODB_DATABASE, LOOKUP_KEY and PORT. Its results bypass FastAPI's encoder: orjson encodes them, which is
the fastest that FastAPI can do.
"""

# No postponed annotations: FastAPI reads them.
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import uvicorn
from fastapi import APIRouter, FastAPI, Header, Path, Query, Request, Response
from pydantic import BaseModel, Field

from benchmarks.drivers import PymongoDriver
from benchmarks.lookups import Call, Refused, to_json
from benchmarks.operations import Operations

_ID = r"^[0-9a-f]{24}$"
_DATE = r"^\d{4}-\d\d-\d\d$"
Key = Annotated[str, Header(alias="X-API-Key")]
Id = Annotated[str, Path(pattern=_ID)]
Day = Annotated[str, Query(pattern=_DATE)]


class NewCustomer(BaseModel):
    name: str = Field(min_length=1, max_length=200)
    surname: str | None = Field(None, max_length=200)
    email: str | None = Field(None, max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")
    phone: str | None = Field(None, max_length=50)
    birthday: str | None = Field(None, pattern=_DATE)
    timezone: str | None = None
    sendInvitation: bool = True


class PlannedSet(BaseModel):
    type: Literal["reps_load"]
    index: int = Field(ge=1)
    minPlannedReps: int = Field(ge=0)
    maxPlannedReps: int = Field(ge=0)
    load: float | None = Field(None, ge=0)
    rest: int | None = Field(None, ge=0)
    isWarmup: bool = False


class NewItem(BaseModel):
    type: Literal["EXERCISE"]
    exerciseId: str = Field(pattern=_ID)
    exerciseSets: list[PlannedSet] = Field(max_length=50)
    exerciseInstructions: str | None = Field(None, max_length=5000)


class DoneSet(BaseModel):
    type: Literal["reps_load"]
    index: int = Field(ge=1)
    reps: int = Field(ge=0)
    load: float = Field(ge=0)


class Log(BaseModel):
    isCompleted: bool
    customerSets: list[DoneSet] = Field(max_length=50)


class LoadChange(BaseModel):
    add: float


class Progression(BaseModel):
    load: LoadChange


class Copy(BaseModel):
    startDate: str = Field(pattern=_DATE)
    endDate: str = Field(pattern=_DATE)
    targetDate: str = Field(pattern=_DATE)
    progression: Progression


def _response(result: Any, status: int = 200) -> Response:
    return Response(to_json(result), status, media_type="application/json")


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    database = PymongoDriver(os.environ["MONGODB_URI"], os.environ["MONGODB_DATABASE"])
    app.state.operations = Operations(database, bytes.fromhex(os.environ["LOOKUP_KEY"]))
    yield
    await database.client.close()


async def _refused(_: Request, error: Exception) -> Response:
    return Response(status_code=error.status if isinstance(error, Refused) else 500)


app = FastAPI(lifespan=_lifespan, openapi_url=None, exception_handlers={Refused: _refused})


def _operations() -> Operations:
    operations: Operations = app.state.operations
    return operations


@app.get("/coach/customers")
async def list_customers(key: Key, archived: bool, pageSize: int, pageNum: int) -> Response:
    query = {"archived": str(archived).lower(), "pageSize": str(pageSize), "pageNum": str(pageNum)}
    return _response(await _operations().customers(Call(key, {}, query)))


@app.get("/coach/attention")
async def list_attention(key: Key, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> Response:
    return _response(await _operations().attention(Call(key, {}, {"limit": str(limit)})))


@app.get("/coach/events")
async def list_events(key: Key, after: int, limit: Annotated[int, Query(ge=1, le=500)]) -> Response:
    return _response(await _operations().events(Call(key, {}, {"limit": str(limit), "after": str(after)})))


Operation = Callable[[Call], Awaitable[Any]]


def _week(read: Callable[[], Operation]) -> APIRouter:
    """The route of a calendar week, with the operation that it calls."""
    router = APIRouter()

    @router.get("/customers/{customer_id}/wblock")
    async def read_calendar(key: Key, customer_id: Id, startDate: Day, endDate: Day) -> Response:
        call = Call(key, {"customerId": customer_id}, {"startDate": startDate, "endDate": endDate})
        return _response(await read()(call))

    return router


def _writes(
    create: Callable[[], Operation],
    add: Callable[[], Operation],
    log: Callable[[], Operation],
    copy: Callable[[], Operation],
) -> APIRouter:
    """The routes of the writes, with the operations that they call."""
    router = APIRouter()
    block = "/customers/{customer_id}/wblocks/{block_id}"

    @router.post("/customers")
    async def create_customer(key: Key, body: NewCustomer) -> Response:
        return _response(await create()(Call(key, {}, {}, body.model_dump())), 201)

    @router.post(f"{block}/witems")
    async def add_item(key: Key, customer_id: Id, block_id: Id, body: NewItem) -> Response:
        path = {"customerId": customer_id, "wblockId": block_id}
        return _response(await add()(Call(key, path, {}, body.model_dump(exclude_unset=True))), 201)

    @router.put(f"{block}/witems/{{item_id}}/log")
    async def log_item(key: Key, customer_id: Id, block_id: Id, item_id: Id, body: Log) -> Response:
        path = {"customerId": customer_id, "wblockId": block_id, "itemId": item_id}
        return _response(await log()(Call(key, path, {}, body.model_dump())))

    @router.post("/customers/{customer_id}/schedule/copy")
    async def copy_week(key: Key, customer_id: Id, body: Copy) -> Response:
        return _response(await copy()(Call(key, {"customerId": customer_id}, {}, body.model_dump())), 201)

    return router


_plain = _writes(
    lambda: _operations().create_customer,
    lambda: _operations().add_item,
    lambda: _operations().log_item,
    lambda: _operations().copy_week,
)
_complete = _writes(
    lambda: _operations().create_customer_in_transaction,
    lambda: _operations().add_item_in_transaction,
    lambda: _operations().log_item_in_transaction,
    lambda: _operations().copy_week_in_transaction,
)
app.include_router(_week(lambda: _operations().calendar), prefix="/coach")
app.include_router(_week(lambda: _operations().presented_calendar), prefix="/presented")
app.include_router(_plain, prefix="/coach")
app.include_router(_complete, prefix="/logged")


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(os.environ["PORT"]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
