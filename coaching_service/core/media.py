"""What a file is, judged by its content: pictures are decoded and written anew, without anything but their pixels."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from coaching_service.core.errors import BadRequest, Unavailable

JPEG, PNG, WEBP, PDF = "image/jpeg", "image/png", "image/webp", "application/pdf"
IMAGE_TYPES = (JPEG, PNG, WEBP)
_EXTENSIONS = {JPEG: ".jpg", PNG: ".png", WEBP: ".webp", PDF: ".pdf"}

_FORMATS = {"JPEG": JPEG, "PNG": PNG, "WEBP": WEBP}
_HELPER = Path(__file__).with_name("image_worker.py")
_HELPER_SECONDS = 60.0
_ANSWER_BYTES = 4096


def file_extension(content_type: str) -> str:
    """The file extension of a content type, with its dot; empty for one the service does not store."""
    return _EXTENSIONS.get(content_type, "")


@dataclass(frozen=True)
class ValidatedFile:
    """A file of a known kind: `file` is what is to be stored, `thumbnail` a small JPEG of a picture."""

    content_type: str
    file: IO[bytes]
    thumbnail: IO[bytes] | None = None

    def close(self) -> None:
        """Let the temporary files go."""
        self.file.close()
        if self.thumbnail is not None:
            self.thumbnail.close()


class ImageProcessor:
    """The process beside ours in which pictures are decoded, one at a time; it starts with the first one.

    A decoded picture takes many times the room of its file, and decoders are where hostile files do their harm: both
    stay there. It ends when we do, however that is.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._turn = asyncio.Lock()

    async def rewrite(self, file: IO[bytes], kinds: Sequence[str], max_pixels: int) -> ValidatedFile:
        """The picture, upright and stripped of all metadata, and its thumbnail.

        Raises BadRequest when it is broken, of another kind or too large, Unavailable when decoding it never ends.
        """
        formats = [name for name, kind in _FORMATS.items() if kind in kinds]
        with ExitStack() as unless_good:
            whole, small = (
                unless_good.enter_context(tempfile.TemporaryFile(prefix=f"coaching-{name}-"))
                for name in ("picture", "thumbnail")
            )
            async with self._turn:
                answer = await self._ask({"formats": formats, "pixels": max_pixels}, [file, whole, small])
            if answer.get("refused") == "pixels":
                raise BadRequest(f"must not have more than {max_pixels} pixels")
            if answer.get("refused") == "broken":
                raise BadRequest("must be a whole picture")
            if "format" not in answer:
                raise BadRequest(f"must be one of: {', '.join(kinds)}")
            unless_good.pop_all()
        whole.seek(0)
        small.seek(0)
        return ValidatedFile(_FORMATS[answer["format"]], whole, small)

    async def _ask(self, question: dict[str, Any], files: Sequence[IO[bytes]]) -> dict[str, Any]:
        line, told = self._started(), b""
        try:
            async with asyncio.timeout(_HELPER_SECONDS):
                socket.send_fds(line, [json.dumps(question).encode()], [file.fileno() for file in files])
                told = await asyncio.get_running_loop().sock_recv(line, _ANSWER_BYTES)
        except (TimeoutError, OSError):
            pass
        finally:
            if not told:  # it ended, hangs, or nobody waits for its answer any more
                self.close()
        if not told:
            raise Unavailable("The picture could not be decoded; try again, or send it smaller")
        answer: dict[str, Any] = json.loads(told)
        return answer

    def _started(self) -> socket.socket:
        if self._line is None:
            self._line, theirs = socket.socketpair()
            self._line.settimeout(0)
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-P", "-W", "ignore", str(_HELPER), str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the service, which hangs up
                )
        return self._line

    def close(self) -> None:
        """End the process; the next picture starts another."""
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._line = self._process = None


async def validate_file(
    images: ImageProcessor, file: IO[bytes], kinds: Sequence[str], max_pixels: int
) -> ValidatedFile:
    """What `file` is, if it is whole and one of `kinds`; pictures are turned upright and stripped of all metadata.

    Raises BadRequest otherwise, with what is asked of the field that held it.
    """
    head = file.read(1024)
    if PDF in kinds and head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"%PDF-"):
        return _pdf(file)
    return await images.rewrite(file, kinds, max_pixels)


def _pdf(file: IO[bytes]) -> ValidatedFile:
    file.seek(0, 2)
    file.seek(max(0, file.tell() - 2048))
    if b"%%EOF" not in file.read():
        raise BadRequest("must be a whole PDF")
    file.seek(0)
    return ValidatedFile(PDF, file)
