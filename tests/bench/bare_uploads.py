"""The bare handler uploads are measured against: the body's one file into Motor's own GridFS upload stream.

Started by the benchmark: `python -m tests.bench.bare_uploads`, told by MONGODB_URI, MONGODB_DATABASE and PORT.
"""

from __future__ import annotations

import os

import uvloop
from aiohttp import BodyPartReader, web
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorGridFSBucket


async def _app() -> web.Application:
    database = AsyncIOMotorClient(os.environ["MONGODB_URI"])[os.environ["MONGODB_DATABASE"]]
    bucket = AsyncIOMotorGridFSBucket(database, bucket_name="bare")

    async def upload(request: web.Request) -> web.Response:
        part = await (await request.multipart()).next()
        assert isinstance(part, BodyPartReader)
        async with bucket.open_upload_stream(part.filename or "file") as stream:
            while piece := await part.read_chunk(64 * 1024):
                await stream.write(piece)
        return web.Response(status=201)

    app = web.Application()
    app.router.add_post("/upload", upload)
    return app


def main() -> None:
    """Serve until SIGTERM."""
    loop = uvloop.new_event_loop()
    web.run_app(
        _app(), host="127.0.0.1", port=int(os.environ["PORT"]), access_log=None, print=lambda _: None, loop=loop
    )


if __name__ == "__main__":
    main()
