"""Other generators of clients accept the document, and what they write works.

Programs in TypeScript: types hold and every step works against the service. Of the others the code is compiled.

Collected with `--clients`; needs Node (20 or newer) and the packages of package-lock.json.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from tests.clients.programs import python_environment, run
from tests.support.client import CoachClient
from tests.support.sampled import proof


async def test_the_typescript_programs_pass_the_strict_type_check(typescript: Path) -> None:
    await run("npm", "run", "--silent", "check", cwd=typescript)


@pytest.mark.parametrize("program", ["openapi-fetch", "orval"])
async def test_a_typescript_program_works(
    typescript: Path, public_server: TestServer, coach: CoachClient, program: str
) -> None:
    key, address = str(coach.key), str(public_server.make_url("")).rstrip("/")
    bundle = f"generated/programs/{program}.js"
    await run("node", bundle, cwd=typescript, environment={"COACHING_BASE_URL": address, "COACHING_API_KEY": key})


_TSC = ("npx", "--no-install", "tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "esnext")
_TSC_OPTIONS = ("--moduleResolution", "bundler", "--lib", "es2022,dom")


@proof
async def test_the_document_has_no_error_and_more_generators_of_typescript_accept_it(typescript: Path) -> None:
    document, here = "generated/openapi.json", typescript
    linted = await run("npx", "--no-install", "redocly", "lint", document, "--format=summary", cwd=here)
    assert "is valid" in linted and "no-invalid-media-type-examples" not in linted
    options = ("--path", document, "--output", "generated/swagger", "--name", "api.ts")
    await run("npx", "--no-install", "swagger-typescript-api", "generate", *options, cwd=here)
    written = (here / "generated" / "swagger" / "api.ts").read_text("utf-8")
    assert re.findall(r"export (?:interface|enum|type) (\w+\d)\b", written) == []
    generator = str(Path(await python_environment()).parent / "openapi-generator-cli")
    await run(generator, "generate", "-i", document, "-g", "typescript-fetch", "-o", "generated/fetch", cwd=here)
    for written_to in ("generated/swagger/api.ts", "generated/fetch/index.ts"):
        await run(*_TSC, *_TSC_OPTIONS, written_to, cwd=here)


@proof
async def test_more_generators_of_python_accept_the_document(typescript: Path, tmp_path: Path) -> None:
    """OpenAPI Generator writes no types of the parameters of webhooks: it receives the document without these."""
    python = await python_environment()
    folder, document = Path(python).parent, typescript / "generated" / "openapi.json"
    models = (
        "--output-model-type",
        "pydantic_v2.BaseModel",
        "--target-python-version",
        "3.11",
        "--use-title-as-name",
        "--output",
        "models.py",
    )
    read = ("--input", str(document), "--input-file-type", "openapi")
    await run(str(folder / "datamodel-codegen"), *read, *models, cwd=tmp_path)
    classes = re.findall(r"^class (\w+)", (tmp_path / "models.py").read_text("utf-8"), re.MULTILINE)
    assert len(classes) > 700
    assert [name for name in classes if name[-1].isdigit()] == []
    without = json.loads(document.read_text("utf-8")) | {"webhooks": {}}
    (tmp_path / "document.json").write_text(json.dumps(without), "utf-8")
    generator = str(folder / "openapi-generator-cli")
    await run(generator, "generate", "-i", "document.json", "-g", "python", "-o", ".", cwd=tmp_path)
    printed = await run(python, "-c", "import models, openapi_client; print(openapi_client.CustomersApi)", cwd=tmp_path)
    assert "customers_api" in printed
