"""The options of commands that use a database, and the settings from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coaching_service.settings import Settings

data_option = click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the embedded database [.local]."
)


def settings_with(data: Path | None = None, **options: Any) -> Settings:
    """The settings of the environment, replaced by those given on the command line."""
    given = {name: value for name, value in {"data_dir": data, **options}.items() if value is not None}
    return Settings.from_environment().model_copy(update=given)


def existing_folder(settings: Settings) -> Path:
    """The data folder, created if it is missing."""
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    return settings.data_dir
