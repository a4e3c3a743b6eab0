"""Records a release for the tests of upgrades: scripts/record-release."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import aiohttp
from pymongo import MongoClient
from pymongo.database import Database

from coaching_service.core.database.documents import registry
from coaching_service.installation.embedded import running_mongod
from tests.support.service_process import environment, until
from tests.upgrades.reading import read_all
from tests.upgrades.release import RELEASES, Collection, Document, Facts, record

ROOT = Path(__file__).parents[2]
DATABASE = "coaching"
MAX_DATA_BYTES, MAX_CODE_BYTES = 500_000, 1_000_000


def build(folder: Path) -> Path:
    """Build the package of this tree as a release does, and return the folder of its files."""
    command = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), ".")
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "package")
    return folder / "package"


def version_of(package: Path) -> str:
    """The version that the package says it is."""
    command = [sys.executable, "-c", "import coaching_service; print(coaching_service.__version__)"]
    printed = subprocess.run(command, cwd=package, capture_output=True, text=True, check=True).stdout
    return printed.strip()


def serve_demo(package: Path, folder: Path) -> Facts:
    """Run the release with a new demo company in `folder` until it has answered some reads; returns the facts of it."""
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "coaching_service", "serve", "--demo", "--port", "0", "--data", str(folder)]
    variables = environment(PYTHONPATH=path, LOG_LEVEL="error")
    version = version_of(package)
    process = subprocess.Popen(command, cwd=package, env=variables, stdout=subprocess.DEVNULL)
    try:
        demo, identifiers = asyncio.run(_read_demo(folder, process, has_changes=not version.startswith("0.1.")))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    return {
        "version": version,
        "secretKey": (folder / "secret.key").read_text().strip(),
        "email": demo["email"],
        "password": demo["password"],
        "apiKey": demo["apiKey"],
        "identifiers": identifiers,
    }


async def _read_demo(
    folder: Path, process: subprocess.Popen[bytes], *, has_changes: bool
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Wait until the data of a new service is at rest; returns what demo.json says, and the answers to reads."""
    file = folder / "demo.json"

    def has_started() -> bool:
        assert process.poll() is None, "the service has ended"
        return file.exists()

    await until(has_started, "the demo company exists")
    demo: dict[str, str] = json.loads(file.read_text())
    if has_changes:
        await until(lambda: has_numbered_all(folder), "all changes have numbers")
    async with aiohttp.ClientSession(demo["baseUrl"], headers={"X-API-Key": demo["apiKey"]}) as http:
        return demo, await read_all(http)


def has_numbered_all(folder: Path) -> bool:
    """Whether the running service has numbered all changes, so that the recorded data is at rest."""
    port = (folder / "mongod.port").read_text().strip()
    with MongoClient[Document](f"mongodb://127.0.0.1:{port}/?directConnection=true") as client:
        return client[DATABASE]["changes"].find_one({"pending": {"$exists": True}}) is None


def read_collections(db: Database[Document]) -> Iterator[Collection]:
    """Yield all collections without the state of processes, which means nothing on another database."""
    state = {name for name, collection in registry.items() if collection.process_state}
    names = db.list_collection_names(filter={"type": "collection"})
    for name in sorted(name for name in names if name not in state and not name.startswith("system.")):
        indexes = [dict(index) for index in db[name].list_indexes() if index["name"] != "_id_"]
        definitions = [{key: index[key] for key in index if key not in ("v", "ns")} for index in indexes]
        yield {"name": name, "indexes": definitions, "documents": list(db[name].find(sort=[("_id", 1)]))}


def pack(package: Path, file: Path) -> None:
    """Write the files of a package to an archive, without what only this machine has."""

    def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return None if "__pycache__" in entry.name else entry

    with tarfile.open(file, "w:xz", preset=9) as archive:
        for path in sorted(package.iterdir()):
            archive.add(path, path.name, filter=anonymous)


def check_size(file: Path, limit: int) -> str:
    """Return the name and the size of a file; ends the program if it is larger than `limit` bytes."""
    if (size := file.stat().st_size) > limit:
        raise SystemExit(f"{file} has {size} bytes, more than {limit}: every clone has it")
    return f"{file.relative_to(ROOT)}: {size} bytes"


def main() -> None:
    """Record the release of this tree, or the data of an earlier one."""
    parser = argparse.ArgumentParser(prog="scripts/record-release", description=__doc__)
    parser.add_argument(
        "--source",
        type=Path,
        help="record the data of the release in this folder (a checkout of its tag), not its code",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="coaching-release-") as temporary:
        work = Path(temporary)
        package: Path = arguments.source.absolute() if arguments.source else build(work)
        version = version_of(package)
        if not all(part.isdecimal() for part in version.split(".")):
            raise SystemExit(f"{version} is not the version of a release: set it first (docs/releasing.md)")
        facts = serve_demo(package, work / "data")
        folder = RELEASES / version
        folder.mkdir(parents=True, exist_ok=True)
        with running_mongod(work / "data") as uri, MongoClient[Document](uri) as client:
            record(folder, facts, read_collections(client[DATABASE]))
        print(check_size(folder / "data.jsonl.xz", MAX_DATA_BYTES))
        if arguments.source is None:
            for earlier in RELEASES.glob("*/code.tar.xz"):
                earlier.unlink()
            pack(package, folder / "code.tar.xz")
            print(check_size(folder / "code.tar.xz", MAX_CODE_BYTES))


if __name__ == "__main__":
    main()
