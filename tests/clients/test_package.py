"""The package as users install it: built from its source archive, in an empty environment, and the quickstart on it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import tarfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from flit_core import buildapi

from coaching_service import __version__
from tests.application.test_readme import json_documents, run_shell, shell_block
from tests.clients.programs import ROOT, run
from tests.support.service_process import until

STARTS_WITHIN_SECONDS = 120


@pytest.fixture(scope="module")
async def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source archive without this repository."""
    folder = tmp_path_factory.mktemp("package")
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        archive = folder / buildapi.build_sdist(str(folder))
    finally:
        os.chdir(before)
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder))
    await run(sys.executable, *build, str(source), cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def install_command() -> str:
    """The command of the guide that installs a wheel with the tested versions, by the `pip` on PATH."""
    guide = (ROOT / "docs" / "small-server.md").read_text("utf-8")
    [command] = re.findall(r"`/opt/coaching-service/bin/(pip install [^`]+\.whl)`", guide)
    return str(command)


@pytest.fixture(scope="module")
async def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`coaching-service`, installed in an empty environment with its dependencies of the versions tested here."""
    folder = tmp_path_factory.mktemp("installed")
    await run(sys.executable, "-m", "venv", str(folder / "venv"), cwd=folder)
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "constraints.txt", folder / "scripts")
    (folder / "dist").mkdir()
    shutil.copy(wheel, folder / "dist")
    await run("bash", "-euc", f"PATH={folder}/venv/bin:$PATH; {install_command()}", cwd=folder)
    return folder / "venv" / "bin" / "coaching-service"


@pytest.fixture
async def facts(program: Path, tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """What the installed service prints about its demo company once it runs, and its API key as Key."""
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(program), "serve", "--demo", "--port", "0", "--data", str(tmp_path / "data")),
            cwd=tmp_path,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        try:
            printed = await read_facts(process, tmp_path / "log")
            # The key is only printed to a terminal; the file is written last.
            written = tmp_path / "data" / "demo.json"
            await until(written.exists, "demo.json")
            yield printed | {"Key": json.loads(written.read_bytes())["apiKey"]}
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0


async def read_facts(process: asyncio.subprocess.Process, log: Path) -> dict[str, str]:
    """Read the lines that the service prints, each with a word first; the last one is how to stop it."""
    assert process.stdout is not None
    facts: dict[str, str] = {}
    async with asyncio.timeout(STARTS_WITHIN_SECONDS):
        while "Stop" not in facts:
            line = (await process.stdout.readline()).decode()
            assert line, f"it ended: see {log}"
            name, _, value = line.partition(" ")
            facts[name] = value.strip()
    return facts


async def test_package_has_its_files_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    source = {
        f"coaching_service/{file.relative_to(ROOT / 'coaching_service').as_posix()}"
        for file in (ROOT / "coaching_service").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert source <= names
    assert {name.split("/")[0] for name in names} == {"coaching_service", f"coaching_service-{__version__}.dist-info"}


async def test_the_guide_installs_the_tested_versions(program: Path, tmp_path: Path) -> None:
    """Each package that is installed has the version in the constraints, and none lacks another."""
    pip = (str(program.parent / "python"), "-m", "pip")
    listed = json.loads(await run(*pip, "list", "--format=json", "--disable-pip-version-check", cwd=tmp_path))
    installed = {each["name"].lower().replace("_", "-"): each["version"] for each in listed}
    lines = (ROOT / "scripts" / "constraints.txt").read_text("utf-8").splitlines()
    tested = dict(line.partition(" ")[0].split("==") for line in lines)
    others = {name: version for name, version in installed.items() if tested.get(name) != version}
    assert others.keys() == {"coaching-service", *(others.keys() & {"pip", "setuptools"})}
    assert len(installed) > 30
    await run(*pip, "check", "--disable-pip-version-check", cwd=tmp_path)


async def test_quickstart_runs_on_the_installed_package(facts: dict[str, str]) -> None:
    output = await run_shell(shell_block("README.md", "## Quickstart"), BASE=facts["Address"], KEY=facts["Key"])
    customers, created, exercises, program = json_documents(output)
    assert customers["docs"] != []
    assert (created["name"], program["name"]) == ("Nora Vega", "Beginner strength")
    assert "Squat" in exercises["docs"][0]["name"]
