"""Validation of uploaded files by their content.

Images are decoded and encoded again, without any metadata; videos keep their encoded pictures and sound only, PDF files
their pages.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Literal

from coaching_service.core.errors import Unavailable
from coaching_service.core.slots import RequestSlots
from coaching_service.core.temporary_files import no_space, open_temporary
from coaching_service.core.video import (
    MP4,
    QUICKTIME,
    VIDEO_TYPES,
    WEBM,
    BrokenVideo,
    UnsupportedTrack,
    UnsupportedVideo,
    clean_video,
    is_video,
)

JPEG, PNG, WEBP, GIF, PDF = "image/jpeg", "image/png", "image/webp", "image/gif", "application/pdf"
ZIP, CSV = "application/zip", "text/csv"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
IMAGE_TYPES = (JPEG, PNG, WEBP)
# Pictures that are stored as JPEG, if the extra "heic" is installed, with which the media worker reads them.
_HEIC_TYPES = ("image/heic", "image/heif") if find_spec("pillow_heif") else ()
# Pictures, also moving ones, and videos. Where GIF is accepted, pictures keep all their frames.
MEDIA_TYPES = (*IMAGE_TYPES, GIF, *VIDEO_TYPES)
_EXTENSIONS = {
    JPEG: ".jpg",
    PNG: ".png",
    WEBP: ".webp",
    GIF: ".gif",
    PDF: ".pdf",
    MP4: ".mp4",
    QUICKTIME: ".mov",
    WEBM: ".webm",
    ZIP: ".zip",
    CSV: ".csv",
    XLSX: ".xlsx",
}

_FORMATS = {"JPEG": JPEG, "PNG": PNG, "WEBP": WEBP, "GIF": GIF}
# A JPEG that is not progressive is scaled down while it is decoded, so it may have this many times more pixels.
_SCALED_JPEG = 8
_WORKER = Path(__file__).with_name("media_worker.py")
_WORKER_SECONDS = 60.0
_PDF_CPU_SECONDS = 10.0
_MAX_REPLY_BYTES = 4096
# How a worker ends that a file has crashed, or whose time for a PDF is used up. Others end it with SIGTERM or SIGKILL.
_CRASHES = frozenset(
    -number for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGPROF)
)
# What the worker gets of the environment, which also has the master keys and the address of the database.
_ENVIRONMENT = ("LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_SNIFFED_BYTES = 1024
_ZIP_START = (b"PK\x03\x04", b"PK\x05\x06")
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


class InvalidFile(Exception):
    """An uploaded file that is not accepted. `message` continues the name of its field; `code` is stable."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message, self.code = message, code


class DecodingFailed(Unavailable):
    """Decoding a file took too long or crashed the worker: another attempt may succeed, or fail again."""


class _WorkerCrashed(DecodingFailed):
    """The file has crashed the worker, or used up its time on the processor: another attempt would fail again."""


SizeLimit = Literal["photo", "plan", "attachment", "import"]


@dataclass(frozen=True)
class StorageQuota:
    """The most files, and bytes of files, that one company may store; 0: no limit."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class UploadLimits:
    """Size limits of uploaded files.

    Bytes of a photo, of a plan, of an attachment (a file of a message, or a picture or video of an exercise) and of an
    import; pixels of a picture.
    """

    photo_bytes: int = 60_000_000
    plan_bytes: int = 25_000_000
    photo_pixels: int = 50_000_000
    attachment_bytes: int = 100_000_000
    import_bytes: int = 1_000_000_000

    def max_bytes(self, size_limit: SizeLimit) -> int:
        """Return the maximum size of a file of that kind, in bytes."""
        limit: int = getattr(self, f"{size_limit}_bytes")
        return limit


def file_extension(content_type: str) -> str:
    """Return the file extension of a content type, with its dot; empty for one the service does not store."""
    return _EXTENSIONS.get(content_type, "")


def sendable_types(content_types: Sequence[str]) -> tuple[str, ...]:
    """Return the content types of the files that may be sent where files are stored with these `content_types`."""
    return (*content_types, *(_HEIC_TYPES if JPEG in content_types else ()))


@dataclass(frozen=True)
class ValidatedFile:
    """A file of a known content type: `file` is the one to store, `thumbnail` a small JPEG of an image."""

    content_type: str
    file: IO[bytes]
    thumbnail: IO[bytes] | None = None

    def close(self) -> None:
        """Remove the temporary files."""
        self.file.close()
        if self.thumbnail is not None:
            self.thumbnail.close()


class MediaWorker:
    """A worker process that rewrites one picture or PDF at a time; it starts with the first.

    A decoded picture needs many times the memory of its file, and decoders are the usual target of malicious files:
    both stay in the worker, which ends with the service.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._slot = RequestSlots(1)

    async def rewrite_picture(
        self, file: IO[bytes], content_types: Sequence[str], max_pixels: int, company: Hashable = None
    ) -> ValidatedFile:
        """Return the image, upright and without metadata, and its thumbnail. Companies take turns.

        `max_pixels`: of all frames together. With GIF among the `content_types`, all frames are kept, otherwise the
        first. A HEIC picture becomes a JPEG. Raises InvalidFile if it is broken, too large or of another content type,
        DecodingFailed, and Unavailable if there is no space for the result.
        """
        formats = [name for name, content_type in _FORMATS.items() if content_type in content_types]
        with ExitStack() as on_failure:
            image, thumbnail = (on_failure.enter_context(open_temporary(name)) for name in ("image", "thumbnail"))
            request = {
                "kind": "picture",
                "formats": formats,
                "pixels": max_pixels,
                "jpeg_pixels": _SCALED_JPEG * max_pixels,
                "animated": GIF in content_types,
            }
            async with self._slot.holding(company):
                reply = await self._request(request, [file, image, thumbnail])
            if reply.get("error") in ("pixels", "memory"):
                frames = " in all frames together" if GIF in content_types else ""
                limit = f"{max_pixels} pixels{frames}, or {_SCALED_JPEG * max_pixels} as a JPEG that is not progressive"
                raise InvalidFile(f"must not have more than {limit}", "TOO_MANY_PIXELS")
            if reply.get("error") == "broken":
                raise InvalidFile("must be a complete picture", "BROKEN_IMAGE")
            if "format" not in reply:
                raise _unsupported(content_types)
            on_failure.pop_all()
        image.seek(0)
        thumbnail.seek(0)
        return ValidatedFile(_FORMATS[reply["format"]], image, thumbnail)

    async def rewrite_pdf(self, file: IO[bytes], company: Hashable = None) -> ValidatedFile:
        """Return the pages of a PDF, without metadata, scripts and embedded files. Companies take turns.

        Raises InvalidFile if it is broken, needs a password, or needs too much time or memory, DecodingFailed, and
        Unavailable if there is no space for the result.
        """
        with ExitStack() as on_failure:
            target = on_failure.enter_context(open_temporary("pdf"))
            async with self._slot.holding(company):
                try:
                    reply = await self._request({"kind": "pdf", "cpu_seconds": _PDF_CPU_SECONDS}, [file, target])
                except _WorkerCrashed:
                    reply = {"error": "memory"}
                if "format" not in reply:  # after an exception in a library, a worker may hold the memory of the file
                    self.close()
            if reply.get("error") == "protected":
                raise InvalidFile("must not need a password: save it without one, and send that file", "PROTECTED_PDF")
            if reply.get("error") == "memory":
                raise InvalidFile("must be simpler: print it to a new PDF, and send that file", "COMPLEX_PDF")
            if "format" not in reply:
                raise InvalidFile("must be a complete PDF", "BROKEN_PDF")
            on_failure.pop_all()
        target.seek(0)
        return ValidatedFile(PDF, target)

    async def _request(self, request: dict[str, Any], files: Sequence[IO[bytes]]) -> dict[str, Any]:
        worker, reply, status = self._connect(), b"", None
        try:
            async with asyncio.timeout(_WORKER_SECONDS):
                socket.send_fds(worker, [json.dumps(request).encode()], [file.fileno() for file in files])
                reply = await asyncio.get_running_loop().sock_recv(worker, _MAX_REPLY_BYTES)
        except (TimeoutError, OSError):
            pass
        finally:
            if not reply:  # the worker crashed or hangs, or this request was cancelled
                status = self.close()
        if not reply:
            failure = _WorkerCrashed if status in _CRASHES else DecodingFailed
            raise failure("The file could not be read; try again, or send it smaller")
        decoded: dict[str, Any] = json.loads(reply)
        if decoded.get("error") == "space":
            raise no_space()
        return decoded

    def _connect(self) -> socket.socket:
        if self._socket is None:
            self._socket, worker_socket = socket.socketpair()
            self._socket.settimeout(0)
            with worker_socket:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-P", "-W", "ignore", str(_WORKER), str(worker_socket.fileno())],
                    pass_fds=(worker_socket.fileno(),),
                    env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C reaches only the service, which then closes the socket
                )
        return self._socket

    def close(self) -> int | None:
        """End the worker; the next file starts another. Returns its exit status, a negative signal."""
        if self._socket is not None:
            self._socket.close()
        status = None
        if self._process is not None:
            self._process.kill()
            status = self._process.wait()
        self._socket = self._process = None
        return status


async def validate_file(
    worker: MediaWorker, file: IO[bytes], content_types: Sequence[str], max_pixels: int, company: Hashable = None
) -> ValidatedFile:
    """Return `file` of a company if it is complete and of one of the `content_types`; `worker` rewrites it.

    Metadata of a video is overwritten in `file` itself. Raises InvalidFile otherwise.
    """
    head = file.read(_SNIFFED_BYTES)
    if PDF in content_types and head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"%PDF-"):
        _require_pdf_end(file)
        return await worker.rewrite_pdf(file, company)
    if head.startswith(_ZIP_START) and {ZIP, XLSX} & set(content_types):
        is_workbook = XLSX in content_types and await asyncio.to_thread(_is_workbook, file)
        file.seek(0)
        if is_workbook or ZIP in content_types:
            return ValidatedFile(XLSX if is_workbook else ZIP, file)
    if CSV in content_types and head and not _NOT_IN_TEXT.search(_without_wide_characters(head)):
        file.seek(0)
        return ValidatedFile(CSV, file)
    if not set(content_types) & {*IMAGE_TYPES, GIF, *VIDEO_TYPES, PDF}:
        raise _unsupported(content_types)
    if is_video(head) and set(VIDEO_TYPES) & set(content_types):
        return await asyncio.to_thread(_validate_video, file, content_types)
    return await worker.rewrite_picture(file, content_types, max_pixels, company)


def _is_workbook(file: IO[bytes]) -> bool:
    """Return whether a ZIP archive is a workbook: it has the entry with the sheets."""
    try:
        with zipfile.ZipFile(file) as archive:
            return "xl/workbook.xml" in archive.NameToInfo
    except (zipfile.BadZipFile, ValueError, OSError):
        return False


def _without_wide_characters(head: bytes) -> bytes:
    """Return the first bytes of a text as ASCII has them: UTF-16, which spreadsheets write too, has a zero in each."""
    is_wide = head.startswith(_UTF_16_MARKS) or b"\x00" in (head[0:1], head[1:2])
    return head.replace(b"\x00", b"") if is_wide and len(head.replace(b"\x00", b"")) * 3 > len(head) else head


def _require_pdf_end(file: IO[bytes]) -> None:
    """Raise InvalidFile if the end of a PDF is missing: the library would take what is there for all pages."""
    file.seek(0, 2)
    file.seek(max(0, file.tell() - 2048))
    if b"%%EOF" not in file.read():
        raise InvalidFile("must be a complete PDF", "BROKEN_PDF")


def _validate_video(file: IO[bytes], content_types: Sequence[str]) -> ValidatedFile:
    try:
        content_type = clean_video(file)
    except UnsupportedVideo:
        raise _unsupported(content_types) from None
    except UnsupportedTrack:
        message = "must contain only picture and sound: its other tracks may show where it was recorded"
        raise InvalidFile(message, "UNSUPPORTED_TRACK") from None
    except BrokenVideo:
        raise InvalidFile("must be a complete video", "BROKEN_VIDEO") from None
    if content_type not in content_types:
        raise _unsupported(content_types)
    file.seek(0)
    return ValidatedFile(content_type, file)


def _unsupported(content_types: Sequence[str]) -> InvalidFile:
    return InvalidFile(f"must be one of: {', '.join(sendable_types(content_types))}", "UNSUPPORTED_FILE_TYPE")
