"""Pin the base images of deploy/Containerfile and the compose files by digest: see scripts/pin-images."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = ("deploy/Containerfile", "docker-compose.yml", "deploy/vps/compose.yaml")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
# An image of a registry has a tag. What compose builds itself has no `image`, and a stage of the Containerfile no tag.
IMAGE = re.compile(
    r"^(?P<before>FROM |\s+image: )(?P<image>[\w./-]+:[\w.-]+)(?P<digest>@sha256:[0-9a-f]{64})?", re.MULTILINE
)
DEADLINE_SECONDS = 60
EPILOG = """\
Each image stays readable by its tag, and is used by its digest: FROM python:3.11-slim-bookworm@sha256:...
Give the digest of the image index (all platforms), which these commands print:

  skopeo inspect --format '{{.Digest}}' docker://docker.io/library/python:3.11-slim-bookworm
  docker buildx imagetools inspect python:3.11-slim-bookworm --format '{{.Manifest.Digest}}'

For an image without a digest on the command line one of them is run, if the program is installed; that needs access
to the registry. The automation does not run this: neither the programs nor a registry are there, so its tests use
digests on the command line and a stand-in for skopeo. Nothing is written unless the digests of all images are known.
Build and start the result before you release it: docker compose up --build
"""


class CannotPin(Exception):
    """The images cannot be pinned; the message is one sentence that says why."""


def images_of(texts: Mapping[str, str]) -> list[str]:
    """The base images by tag, each once, in the order of the files."""
    return list(dict.fromkeys(match["image"] for text in texts.values() for match in IMAGE.finditer(text)))


def find_unpinned(texts: Mapping[str, str]) -> list[str]:
    """The base images that a file uses without a digest."""
    matches = [match for text in texts.values() for match in IMAGE.finditer(text)]
    return list(dict.fromkeys(match["image"] for match in matches if match["digest"] is None))


def pin(text: str, digests: Mapping[str, str]) -> str:
    """A file with its images pinned by these digests; without digests, by tag alone."""
    return IMAGE.sub(lambda match: match["before"] + match["image"] + _suffix(digests, match["image"]), text)


def _suffix(digests: Mapping[str, str], image: str) -> str:
    return f"@{digests[image]}" if image in digests else ""


def read_arguments(given: Sequence[str], images: Sequence[str]) -> dict[str, str]:
    """The digests on the command line by image. Raises CannotPin for one that is malformed or of no base image."""
    digests = {}
    for each in given:
        image, _, digest = each.partition("=")
        if image not in images:
            raise CannotPin(f"{image} is not a base image: these are {', '.join(images)}")
        if DIGEST.fullmatch(digest) is None:
            raise CannotPin(f"The digest of {image} is not sha256: and 64 hexadecimal digits")
        digests[image] = digest
    return digests


def ask_registry(image: str) -> str:
    """The digest of an image as skopeo or docker reports it. Raises CannotPin."""
    first, has_folder, _ = image.partition("/")
    official = f"docker.io/library/{image}"
    name = official if not has_folder else image if "." in first else f"docker.io/{image}"
    commands = {
        "skopeo": ["skopeo", "inspect", "--format", "{{.Digest}}", f"docker://{name}"],
        "docker": ["docker", "buildx", "imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}"],
    }
    command = next((command for program, command in commands.items() if shutil.which(program)), None)
    if command is None:
        raise CannotPin(f"Give the digest of {image}, as {image}=sha256:...: neither skopeo nor docker is installed")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)  # noqa: S603 - fixed programs; images are from our files
    except subprocess.TimeoutExpired:
        raise CannotPin(f"{command[0]} did not end within {DEADLINE_SECONDS} s for {image}") from None
    digest, reason = done.stdout.strip(), (done.stderr or done.stdout).splitlines()
    if done.returncode != 0 or DIGEST.fullmatch(digest) is None:
        raise CannotPin(f"{command[0]} does not know the digest of {image}: {reason[0] if reason else 'no output'}")
    return digest


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> None:
    """Pin the images; ends the program with one sentence if that is not possible."""
    parser = argparse.ArgumentParser(
        prog="scripts/pin-images",
        description="Pins the base images of the container files by digest, for a release.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("digests", nargs="*", metavar="IMAGE=sha256:DIGEST", help="the digest of a base image")
    parser.add_argument("--unpin", action="store_true", help="go back to the tags, such as before renewing the digests")
    options = parser.parse_args(arguments)
    texts = {name: (root / name).read_text("utf-8") for name in FILES}
    try:
        images = images_of(texts)
        digests = {} if options.unpin else read_arguments(options.digests, images)
        if not options.unpin:
            digests |= {image: ask_registry(image) for image in images if image not in digests}
    except CannotPin as error:
        sys.exit(str(error))
    for name, text in texts.items():
        (root / name).write_text(pin(text, digests), "utf-8")
    print("\n".join(image + _suffix(digests, image) for image in images))


if __name__ == "__main__":
    main()
