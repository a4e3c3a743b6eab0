"""The archive of an export: complete, with checksums, and never compressed so much that an import refuses it."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections.abc import AsyncIterator
from typing import Any

import pytest

from coaching_service.lifecycle.export import Archive


@pytest.mark.parametrize("kind", ["equal", "random", "mixed", "none"])
async def test_records_are_read_back_and_never_compressed_too_much(kind: str) -> None:
    chance = random.Random(1)
    same = {"text": "the same in all of them " * 20}
    documents: list[dict[str, Any]] = [
        {"text": f"{chance.random()}"} if kind == "random" or (kind == "mixed" and number % 5000 > 2500) else same
        for number in range(0 if kind == "none" else 20_000)
    ]

    async def stream() -> AsyncIterator[dict[str, Any]]:
        for document in documents:
            yield document

    archive = Archive()
    content = b"".join([output async for output in archive.add_records("records.jsonl", stream())])
    content += archive.close({"version": 1})

    with zipfile.ZipFile(io.BytesIO(content)) as written:
        assert written.testzip() is None
        lines = written.read("records.jsonl")
        (entry,) = json.loads(written.read("manifest.json"))["entries"]
        info = written.getinfo("records.jsonl")
    assert [json.loads(line) for line in lines.splitlines()] == documents
    assert info.file_size <= 60 * info.compress_size + 300_000
    assert entry == {
        "name": "records.jsonl",
        "bytes": len(lines),
        "sha256": hashlib.sha256(lines).hexdigest(),
        "records": len(documents),
    }
