"""The program of the task page about applications, as a reader would copy it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.support.visitor import Visitor


@asynccontextmanager
async def allowed_program(
    folder: Path, base: str, browser: Visitor, **environment: str
) -> AsyncIterator[asyncio.StreamReader]:
    """Run the program in a folder, allow it in the coach's browser, and return what it prints from then on."""
    text = (Path("docs") / "tasks" / "build-an-application.md").read_text("utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (folder / "application.py").write_text(program, "utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(folder / "application.py")),
        env={**os.environ, "BASE": base, **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        address = (await process.stdout.readline()).decode().removeprefix("Open ").strip().removeprefix(base)
        page = (await browser.get(address)).ok()
        assert "See your clients" in page.text and "Client list" in page.text
        location = (await browser.submit_only(page, "/oauth/authorize", decision="allow")).headers["Location"]
        async with aiohttp.ClientSession() as http, http.get(location) as callback:
            assert await callback.text() == "Done. You can close this page."
        yield process.stdout
    finally:
        process.kill()
        await process.wait()
