"""The base images are pinned by digest, all or none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts import pin_images

PYTHON, MONGO, CADDY = "python:3.11-slim-bookworm", "mongo:8.0", "caddy:2.10"
DIGEST, OTHER = f"sha256:{'a1' * 32}", f"sha256:{'b2' * 32}"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the files, on a machine with neither skopeo nor docker."""
    for name in pin_images.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pin_images.ROOT / name, tmp_path / name)
    pin_images.main(["--unpin"], tmp_path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def contents(root: Path) -> list[str]:
    return [(root / name).read_text() for name in pin_images.FILES]


def test_given_digests_are_used_in_all_places_and_can_be_renewed(root: Path) -> None:
    before = contents(root)
    pin_images.main([f"{PYTHON}={OTHER}", f"{MONGO}={OTHER}", f"{CADDY}={OTHER}"], root)
    pin_images.main([f"{PYTHON}={DIGEST}", f"{MONGO}={OTHER}", f"{CADDY}={OTHER}"], root)
    containerfile, compose, small_server = contents(root)
    assert containerfile.count(f"FROM {PYTHON}@{DIGEST}") == 2
    assert f"image: {MONGO}@{OTHER}\n" in compose
    assert f"image: {CADDY}@{OTHER}\n" in small_server
    assert pin_images.find_unpinned({"a": compose, "b": small_server}) == []
    pin_images.main(["--unpin"], root)
    assert contents(root) == before
    assert pin_images.find_unpinned(dict(zip(pin_images.FILES, before, strict=True))) == [PYTHON, MONGO, CADDY]


def test_missing_digests_are_asked_from_the_registry(root: Path) -> None:
    program = root / "bin" / "skopeo"
    program.write_text(f'#!/bin/sh\n[ "$4" = docker://docker.io/library/{PYTHON} ] && echo {DIGEST}\n')
    program.chmod(0o700)
    pin_images.main([f"{MONGO}={OTHER}", f"{CADDY}={OTHER}"], root)
    assert f"FROM {PYTHON}@{DIGEST}" in contents(root)[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([f"{PYTHON}={DIGEST}"], "neither skopeo nor docker is installed"),
        ([f"{PYTHON}=sha256:abc"], "is not sha256: and 64 hexadecimal digits"),
        ([f"debian:12={DIGEST}"], f"debian:12 is not a base image: these are {PYTHON}, {MONGO}, {CADDY}"),
    ],
)
def test_nothing_is_written_unless_all_digests_are_known(root: Path, arguments: list[str], sentence: str) -> None:
    before = contents(root)
    with pytest.raises(SystemExit, match=sentence):
        pin_images.main(arguments, root)
    assert contents(root) == before
