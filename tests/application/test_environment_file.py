"""The file of variables that the units pass to the service: commands read it by themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coaching_service.command_line import options
from coaching_service.command_line.options import read_variables, settings_with
from coaching_service.settings import SettingsError
from tests.support.commands import Operator
from tests.support.service_process import SETTINGS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the file, which does not exist, and no setting in the environment."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "coaching-service.env"
    monkeypatch.setattr(options, "ENVIRONMENT_FILE", path)
    return path


def write_variables(file: Path, variables: dict[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in variables.items()))


async def test_command_uses_the_database_of_the_file_and_says_so(operator: Operator, file: Path) -> None:
    write_variables(file, operator.environment)
    operator.environment = {}
    owner = ("--name", "Ana", "--email", "ana@coaching.example", "--password", "correct horse battery")
    result = await operator.types("create-company", "My Gym", *owner)
    assert "Key " in result.ok()
    assert result.err.startswith(f"Settings of {file}; database: 127.0.0.1:")
    [company] = (await operator.documents())["companies"]
    assert "My Gym" in company.values()


def test_file_is_not_read_with_a_setting_in_the_environment_or_a_folder(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("MONGODB_DATABASE=other\n")
    assert settings_with(tmp_path).mongodb_database == "coaching"
    monkeypatch.setenv("LOG_LEVEL", "")  # as compose passes a variable without a value
    assert settings_with().mongodb_database == "other"
    monkeypatch.setenv("LOG_LEVEL", "error")
    capsys.readouterr()
    assert settings_with().mongodb_database == "coaching"
    text = capsys.readouterr().err
    assert text == f"Settings of the environment, not of {file}; database: {Path('.local').absolute()}\n"
    file.unlink()
    assert settings_with().mongodb_database == "coaching"
    assert capsys.readouterr().err == ""


def test_file_without_a_folder_means_that_of_the_units(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("PORT=8081\n")
    assert settings_with().data_dir == Path("/var/lib/coaching-service")
    assert capsys.readouterr().err == f"Settings of {file}; database: /var/lib/coaching-service\n"
    for unit in (ROOT / "deploy" / "systemd").glob("coaching-service*.service"):
        text = unit.read_text()
        if "EnvironmentFile=" in text:
            assert re.findall(r"^EnvironmentFile=-?(.*)$", text, re.MULTILINE) == ["/etc/coaching-service.env"], unit
            assert "DATA_DIR=/var/lib/coaching-service" in text, unit


def test_file_that_cannot_be_read_is_named_with_the_database(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.mkdir()
    settings = settings_with()
    assert capsys.readouterr().err == (
        f"{file} cannot be read (Is a directory); database: {settings.data_dir.absolute()}\n"
    )


def test_invalid_value_in_the_file_is_refused_by_its_name(file: Path) -> None:
    file.write_text("PORT=none\n")
    with pytest.raises(SettingsError, match="The setting PORT is invalid"):
        settings_with()


def test_variables_are_read_as_systemd_does() -> None:
    text = """# A comment
; another
BASE_URL=https://coaching.example
 MAIL_FROM = "Coaching <us@coaching.example>"
SMTP_PASSWORD='a # b "c" $d'
SMTP_HOST="mail\
.example"
SMTP_USERNAME=it's
no assignment
EMPTY=
"""
    assert read_variables(text) == {
        "BASE_URL": "https://coaching.example",
        "MAIL_FROM": "Coaching <us@coaching.example>",
        "SMTP_PASSWORD": 'a # b "c" $d',
        "SMTP_HOST": "mail.example",
        "SMTP_USERNAME": "it's",
        "EMPTY": "",
    }
