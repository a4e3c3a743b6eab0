"""scripts/environment with the real pip and one large package, after an installation that was interrupted."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.reliability.interrupt_installation import HEED_CTRL_C
from tests.reliability.test_environment_script import SCRIPT
from tests.support.service_process import until

BACKEND = """\
from pathlib import Path
from zipfile import ZipFile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "coaching_service-1.0"
    with ZipFile(Path(folder) / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("coaching_service.py", "")
        wheel.writestr(f"{name}.dist-info/METADATA", "Metadata-Version: 2.1\\nName: coaching-service\\nVersion: 1.0\\n")
        wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{name}.dist-info/RECORD", "")
    return f"{name}-py3-none-any.whl"
"""
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "coaching-service"
version = "1.0"
"""
PARTS = 40
PART_BYTES = 2_000_000


@pytest.fixture
def real_repository(tmp_path: Path) -> Path:
    """A repository with the script whose one locked package has 40 files of 2 MB."""
    folder, wheels = tmp_path / "repository", tmp_path / "wheels"
    (folder / "scripts").mkdir(parents=True)
    wheels.mkdir()
    shutil.copy(SCRIPT, folder / "scripts" / "environment")
    wheel = wheels / "large-1.0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for number in range(PARTS):
            archive.writestr(f"large/{number}", bytes(PART_BYTES))
        archive.writestr("large-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: large\nVersion: 1.0\n")
        archive.writestr("large-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("large-1.0.dist-info/RECORD", "")
    locked = f"large==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    (folder / "scripts" / "requirements.lock").write_text(locked)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(BACKEND)
    return folder


def really_install(repository: Path) -> subprocess.Popen[str]:
    """Start the script with the real python3 and pip, in a process group of its own."""
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(repository.parent / "wheels"), "PIP_CONFIG_FILE": os.devnull}
    return subprocess.Popen(
        [*HEED_CTRL_C, "bash", "-c", ". scripts/environment"],
        cwd=repository,
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        (signal.SIGINT, ".venv/lib/python3*/site-packages/*"),
        (signal.SIGKILL, ".venv/lib/python3*/site-packages/large/1*"),
    ],
)
async def test_installation_that_is_interrupted_is_completed_by_the_next(
    real_repository: Path, number: signal.Signals, moment: str
) -> None:
    """A kill or Ctrl-C while the environment is created, and while the package is written."""
    first = really_install(real_repository)
    await until(lambda: any(real_repository.glob(moment)) or first.poll() is not None, f"{moment} is written")
    os.killpg(first.pid, number)
    first.communicate(timeout=60)
    assert first.returncode != 0
    assert not (real_repository / ".venv" / "installed.lock").exists()

    again = really_install(real_repository)
    printed, _ = again.communicate(timeout=120)
    assert again.returncode == 0, printed
    assert files_of_the_package(real_repository) == {str(part): PART_BYTES for part in range(PARTS)}
    assert old_environments(real_repository) == []


def files_of_the_package(repository: Path) -> dict[str, int]:
    """The sizes of the installed files by name."""
    [installed] = repository.glob(".venv/lib/python3*/site-packages/large")
    return {file.name: file.stat().st_size for file in installed.iterdir() if file.is_file()}


def old_environments(repository: Path) -> list[Path]:
    """Folders of environments that were replaced."""
    return list(repository.glob(".venv.old*"))
