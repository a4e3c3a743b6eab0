"""scripts/release: what it compares, and what it says about steps that a machine cannot do."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaching_service import __version__
from scripts import publish, release
from scripts.release import CannotDo, Failed, Release, Step, find_other_versions, perform, read_section, read_versions

CHANGES = """# Changelog

## [Unreleased]

## 0.3.0 - 2026-12-01

### Added

- This.

## 0.2.0 - 2026-11-23

- That.
"""


def test_all_files_have_one_version_or_that_of_the_development() -> None:
    versions = read_versions()
    assert all(len(each) == 1 for each in versions.values()), versions
    assert find_other_versions(versions, __version__) == []


def test_files_with_another_version_are_named() -> None:
    versions = {name: {"0.3.0"} for name in release.VERSIONS} | {"SECURITY.md": {"0.3"}}
    assert find_other_versions(versions, "0.3.0") == []
    assert find_other_versions(
        versions | {"server.json": {"0.2.0"}, "clients/python/pyproject.toml": set()}, "0.3.0"
    ) == [
        "server.json",
        "clients/python/pyproject.toml",
    ]
    assert find_other_versions(versions, "0.3.1") == list(release.VERSIONS)[:3] + list(release.VERSIONS)[4:]
    developed = versions | {name: {"0.3.1.dev0"} for name in release.DEVELOPED}
    assert find_other_versions(developed, "0.3.1.dev0") == []
    assert find_other_versions(developed | {"pyproject.toml": {"0.3.0"}}, "0.3.1.dev0") == ["pyproject.toml"]


def test_tag_must_be_that_of_the_version() -> None:
    with pytest.raises(Failed, match=f"The tag is v9.9.9, and the version {__version__}"):
        release.check_versions(Release(__version__, "v9.9.9"))
    assert release.check_versions(Release(__version__, f"v{__version__}")) == f"all files have {__version__}"


def test_section_of_a_version_is_read() -> None:
    assert read_section(CHANGES, "0.3.0") == "### Added\n\n- This."
    assert read_section(CHANGES, "0.2.0") == "- That."
    assert read_section(CHANGES, "[Unreleased]") == ""
    assert read_section(CHANGES, "0.2") is None


@pytest.mark.parametrize(
    ("text", "tag", "refused"),
    [
        (CHANGES, "v0.3.0", None),
        (CHANGES.replace("[Unreleased]\n", "[Unreleased]\n\n- Later.\n"), "v0.3.0", 'move the entries of "Unreleased"'),
        (CHANGES.replace("## 0.3.0", "## 0.3.1"), "v0.3.0", 'move the entries of "Unreleased"'),
        (CHANGES.replace("## 0.3.0", "## 0.3.1"), None, "nothing is described"),
        (CHANGES, None, None),
    ],
)
def test_notes_are_the_section_of_the_version(
    text: str, tag: str | None, refused: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "DIST", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text(text)
    if refused:
        with pytest.raises(Failed, match=refused):
            release.write_notes(Release("0.3.0", tag))
        return
    release.write_notes(Release("0.3.0", tag))
    assert (tmp_path / "notes.md").read_text() == "### Added\n\n- This.\n"


def test_steps_that_need_programs_say_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotDo, match="Docker is not installed"):
        release.build_image(Release("0.3.0", None))
    with pytest.raises(CannotDo, match="Node 20 or newer is not installed"):
        release.build_clients(Release("0.3.0", None))
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\n[ "$1" = buildx ]\n')
    program.chmod(0o700)
    with pytest.raises(CannotDo, match="Docker has no daemon here"):
        release.build_image(Release("0.3.0", None))


def test_earlier_results_are_removed_but_not_those_of_audits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(release, "DIST", tmp_path)
    for name in ("a.whl", "audit.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "clients").mkdir()
    release.remove_earlier_results()
    assert [file.name for file in tmp_path.iterdir()] == ["audit.json"]


def test_what_only_the_owner_can_give_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is published without it; the files to publish are those of a release."""
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(publish, "run", lambda *command: ran.append(command))
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    monkeypatch.setattr(publish, "DIST", tmp_path)
    targets = {each.name: each for each in publish.TARGETS}
    assert list(targets) == ["package", "python-library", "typescript-library", "n8n", "mcp-registry", "image"]
    for name in ("TWINE_PASSWORD", "NODE_AUTH_TOKEN", "IMAGE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("package", "python-library", "typescript-library", "n8n", "image"):
        with pytest.raises(Failed, match=" is not set"):
            publish.publish(targets[name])
    monkeypatch.setenv("TWINE_PASSWORD", "a token")
    with pytest.raises(Failed, match="0 files coaching_service-"):
        publish.publish(targets["package"])
    assert ran == []
    files = [str(tmp_path / f"coaching_service-0.3.0{ending}") for ending in ("-py3-none-any.whl", ".tar.gz")]
    for file in files:
        Path(file).touch()
    publish.publish(targets["package"])
    assert ran == [("twine", "upload", "--non-interactive", *files)]


def test_checksums_are_of_all_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(release, "DIST", tmp_path)
    (tmp_path / "a.whl").write_text("abc")
    (tmp_path / "clients").mkdir()
    release.write_checksums(Release("0.3.0", None))
    release.write_checksums(Release("0.3.0", None))
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (tmp_path / "SHA256SUMS").read_text() == f"{digest}  a.whl\n"


def test_dry_run_goes_on_without_what_a_machine_cannot_do_and_a_release_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def cannot(_: Release) -> str:
        raise CannotDo("no Docker")

    def fail(_: Release) -> str:
        raise Failed("it is wrong")

    done = Step("first", "First", lambda _: "made")
    steps = (done, Step("image", "Image", cannot), done)
    assert perform(Release("0.3.0", None), steps) is True
    assert capsys.readouterr().out.splitlines() == [
        "done      first       First: made",
        "NOT DONE  image       Image: no Docker",
        "done      first       First: made",
        "3 steps, not done here: image; failed: none",
    ]
    assert perform(Release("0.3.0", "v0.3.0"), steps) is False
    assert perform(Release("0.3.0", "v0.3.0"), (done,)) is True
    assert perform(Release("0.3.0", None), (Step("bad", "Bad", fail), done)) is False
    assert "FAILED    bad         Bad: it is wrong" in capsys.readouterr().out
