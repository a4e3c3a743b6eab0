"""The bare handler that uploads are compared with: the body's one file into Motor's own GridFS upload stream.

Started by the benchmark: `python -m benchmarks.bare_uploads`, configured by MONGODB_URI, MONGODB_DATABASE and PORT.
"""

from __future__ import annotations

import os

from aiohttp import BodyPartReader, web
from motor.motor_asyncio import AsyncIOMotorClient, AsyncIOMotorGridFSBucket

from benchmarks.bare import serve


async def app() -> web.Application:
    """The application, with one path for uploads."""
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


if __name__ == "__main__":
    serve(app())
