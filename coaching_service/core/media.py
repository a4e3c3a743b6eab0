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
import struct
import subprocess
import sys
import zipfile
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal

from coaching_service.core.errors import Unavailable
from coaching_service.core.slots import RequestSlots
from coaching_service.core.temporary_files import no_space, open_temporary

# --- Video ------------------------------------------------------------------------------------------------------------
# Validation of MP4, QuickTime and WebM files by their structure, and removal of all that is neither picture nor sound.
#
# A video is not decoded: only its boxes (MP4, ISO/IEC 14496-12, and QuickTime) or elements (WebM, RFC 8794 and 9559)
# are walked. What a video needs to be played stays; metadata, such as the location, is overwritten in place with empty
# padding of the same size, so that no offset changes. So is a track of another kind (cameras write GPS positions as
# such)
# with its samples, if its tables say where they are; otherwise the file is rejected.


MP4, QUICKTIME, WEBM = "video/mp4", "video/quicktime", "video/webm"
VIDEO_TYPES = (MP4, QUICKTIME, WEBM)

# Boxes, elements, or samples of a removed track; half an hour recorded by a browser has about 150,000.
_MAX_ENTRIES = 200_000
_ZEROS = bytes(64 * 1024)


class InvalidFile(Exception):
    """An uploaded file that is not accepted. `message` continues the name of its field; `code` is stable."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message, self.code = message, code


class UnsupportedVideo(Exception):
    """The file is of another format than MP4, QuickTime and WebM, or contains no picture."""


def _broken() -> InvalidFile:
    """Return the error of a file that is incomplete, or whose structure is invalid."""
    return InvalidFile("must be a complete video", "BROKEN_VIDEO")


def _other_track() -> InvalidFile:
    """Return the error of a file with a track that cannot be removed, and may contain the location."""
    message = "must contain only picture and sound: its other tracks may show where it was recorded"
    return InvalidFile(message, "UNSUPPORTED_TRACK")


@dataclass(frozen=True)
class _Entry:
    """A box or element: its name, where it begins, where its content begins, and where both end."""

    name: bytes
    start: int
    content: int
    end: int


def is_video(head: bytes) -> bool:
    """Return whether a file with these first bytes claims to be a video: one with boxes, or a WebM file."""
    return (head[4:8] == b"ftyp" and head[8:12] not in _PICTURE_BRANDS) or head.startswith(_EBML)


def clean_video(file: IO[bytes]) -> str:
    """Remove metadata from a video, in place, and return its content type.

    Takes bounded memory, and time in proportion to the number of boxes or elements. Raises InvalidFile, and
    UnsupportedVideo for another format than MP4, QuickTime and WebM, and without a picture.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(4) == _EBML:
        _clean_webm(file, size)
        return WEBM
    first = next(_iterate_boxes(file, 0, size, _Budget()))
    length = min(first.end - first.content, 1024)
    brands = _read(file, first.content, length)
    major, compatible = brands[:4], {brands[at : at + 4] for at in range(8, length, 4)}
    is_quicktime = major == _QUICKTIME_BRAND
    if first.name != b"ftyp" or not (is_quicktime or {major, *compatible} & _BRANDS):
        raise UnsupportedVideo
    budget = _Budget()
    video = _Mp4(file, list(_iterate_boxes(file, 0, size, budget)), budget)
    _clean_boxes(video, b"", video.boxes)
    if not (video.has(b"moov") and video.has(b"mdat")):
        raise _broken()
    if _PICTURE not in video.kinds:
        raise UnsupportedVideo
    return QUICKTIME if is_quicktime else MP4


class _Budget:
    """Counts the entries of a file. Raises InvalidFile for too many."""

    def __init__(self) -> None:
        self._left = _MAX_ENTRIES

    def spend(self, count: int = 1) -> None:
        self._left -= count
        if self._left < 0:
            raise _broken()


def _read(file: IO[bytes], start: int, length: int) -> bytes:
    file.seek(start)
    content = file.read(length)
    if len(content) != length:
        raise _broken()
    return content


def _write_zeros(file: IO[bytes], start: int, end: int) -> None:
    file.seek(start)
    while start < end:
        start += file.write(_ZEROS[: end - start])


# --- MP4 -----------------------------------------------------------------------------------------------------------

# HEIC and AVIF: pictures in the same boxes.
_PICTURE_BRANDS = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"avif", b"avis"}
_QUICKTIME_BRAND = b"qt  "
# The brands of pictures and sound alone are not among them.
_BRANDS = {
    *(b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"iso7", b"iso8", b"iso9"),
    *(b"mp41", b"mp42", b"avc1", b"M4V ", b"M4VH", b"M4VP", b"MSNV", b"dash", b"cmfc", b"cmf2", b"hvc1", b"av01"),
}
# By container, the boxes that players need. `free` boxes are padding.
_BOXES: dict[bytes, set[bytes]] = {
    b"": {b"ftyp", b"styp", b"moov", b"mdat", b"moof", b"sidx", b"ssix", b"prft", b"mfra", b"pdin", b"free"},
    b"moov": {b"mvhd", b"trak", b"mvex", b"iods", b"free"},
    b"trak": {b"tkhd", b"tapt", b"tref", b"edts", b"mdia", b"free"},
    b"mdia": {b"mdhd", b"hdlr", b"elng", b"minf", b"free"},
    b"minf": {b"vmhd", b"smhd", b"nmhd", b"gmhd", b"hdlr", b"dinf", b"stbl", b"free"},
    b"moof": {b"mfhd", b"traf", b"free"},
    b"traf": {b"tfhd", b"tfdt", b"trun", b"subs", b"sbgp", b"sgpd", b"saiz", b"saio", b"free"},
}
_PADDING = (b"free", b"skip")
_PICTURE, _ALLOWED_TRACKS = b"vide", {b"vide", b"soun", b"tmcd"}  # tmcd: time codes
_HANDLER_BYTES = 12  # version, a constant, and the kind; a name follows
_COMPRESSOR_NAME, _COMPRESSOR_NAME_BYTES = 42, 32  # where it begins in the description of a picture, and its length
_SIZES, _CHUNKS, _POSITIONS, _LARGE_POSITIONS = b"stsz", b"stsc", b"stco", b"co64"


@dataclass
class _Mp4:
    """An MP4 or QuickTime file, its top-level boxes, and the kinds of the tracks found so far."""

    file: IO[bytes]
    boxes: Sequence[_Entry]
    budget: _Budget
    kinds: set[bytes] = field(default_factory=set)

    def has(self, name: bytes) -> bool:
        return any(box.name == name for box in self.boxes)


def _clean_boxes(video: _Mp4, container: bytes, boxes: Iterator[_Entry] | Sequence[_Entry]) -> None:
    """Turn every box of a container that is not needed into padding."""
    for box in boxes:
        if box.name not in _BOXES[container] or box.name in _PADDING:
            _free(video.file, box)
        elif box.name == b"trak":
            _clean_track(video, box)
        elif box.name == b"hdlr":  # its name is of the device or program, and may be of a person
            _write_zeros(video.file, box.content + _HANDLER_BYTES, box.end)
        elif box.name in _BOXES:
            _clean_boxes(video, box.name, _iterate_boxes(video.file, box.content, box.end, video.budget))


def _clean_track(video: _Mp4, track: _Entry) -> None:
    """Clean a track of picture or sound, and remove another one. Raises InvalidFile if that is not possible."""
    handler = _find_box(video, track, b"mdia", b"hdlr")
    kind = b"" if handler is None else _read(video.file, handler.content + 8, 4)
    if kind in _ALLOWED_TRACKS:
        video.kinds.add(kind)
        _clean_boxes(video, b"trak", _iterate_boxes(video.file, track.content, track.end, video.budget))
        table = _find_box(video, track, b"mdia", b"minf", b"stbl", b"stsd") if kind == _PICTURE else None
        if table is not None:  # the descriptions of pictures have a place of fixed size for the name of the compressor
            (count,) = struct.unpack(">I", _read(video.file, table.content + 4, 4))
            for entry in islice(_iterate_boxes(video.file, table.content + 8, table.end, video.budget), count):
                if (start := entry.content + _COMPRESSOR_NAME) + _COMPRESSOR_NAME_BYTES <= entry.end:
                    _write_zeros(video.file, start, start + _COMPRESSOR_NAME_BYTES)
        return
    # The samples of another track are overwritten, if its tables say where all of them are.
    tables = _find_box(video, track, b"mdia", b"minf", b"stbl")
    if tables is None or video.has(b"moof"):
        raise _other_track()
    media = [box for box in video.boxes if box.name == b"mdat"]
    starts = [box.content for box in media]
    for start, end in _iterate_chunks(video, tables):
        number = bisect_right(starts, start) - 1
        if number < 0 or end > media[number].end:
            raise _broken()
        _write_zeros(video.file, start, end)
    _free(video.file, track)


def _free(file: IO[bytes], box: _Entry) -> None:
    file.seek(box.start + 4)
    file.write(b"free")
    _write_zeros(file, box.content, box.end)


def _find_box(video: _Mp4, parent: _Entry, *path: bytes) -> _Entry | None:
    """Return the first box at a path of names."""
    for box in _iterate_boxes(video.file, parent.content, parent.end, video.budget):
        if box.name == path[0]:
            return box if len(path) == 1 else _find_box(video, box, *path[1:])
    return None


def _iterate_chunks(video: _Mp4, tables: _Entry) -> Iterator[tuple[int, int]]:
    """Iterate over the chunks of a track: where the samples begin that follow each other, and where they end."""
    boxes = {box.name: box for box in _iterate_boxes(video.file, tables.content, tables.end, video.budget)}
    positions = boxes.get(_POSITIONS) or boxes.get(_LARGE_POSITIONS)
    if positions is None or not {_SIZES, _CHUNKS} <= boxes.keys():
        raise _other_track()
    starts = _read_table(video, positions, 4, ">Q" if positions.name == _LARGE_POSITIONS else ">I")
    (size_of_all,) = struct.unpack(">I", _read(video.file, boxes[_SIZES].content + 4, 4))
    sizes = iter([] if size_of_all else _read_table(video, boxes[_SIZES], 8, ">I"))
    runs = _read_table(video, boxes[_CHUNKS], 4, ">III")  # the first chunk of each run, and samples in a chunk
    run = -1
    for number, (start,) in enumerate(starts, 1):
        while run + 1 < len(runs) and runs[run + 1][0] <= number:
            run += 1
        count = runs[run][1] if run >= 0 else 0
        video.budget.spend(count)
        yield start, start + (size_of_all * count if size_of_all else sum(next(sizes, (0,))[0] for _ in range(count)))


def _read_table(video: _Mp4, box: _Entry, offset: int, entry: str) -> list[tuple[int, ...]]:
    """Return the entries of a table, which follow their number at an offset."""
    (count,) = struct.unpack(">I", _read(video.file, box.content + offset, 4))
    video.budget.spend(count)
    return list(struct.iter_unpack(entry, _read(video.file, box.content + offset + 4, count * struct.calcsize(entry))))


def _iterate_boxes(file: IO[bytes], start: int, end: int, budget: _Budget) -> Iterator[_Entry]:
    """Iterate over the boxes between two positions. Raises InvalidFile if they do not fill that space exactly."""
    while start < end:
        budget.spend()
        header = _read(file, start, 8)
        length, content = int.from_bytes(header[:4], "big"), start + 8
        if length == 1:
            length, content = int.from_bytes(_read(file, start + 8, 8), "big"), start + 16
        box_end = end if length == 0 else start + length
        if box_end < content or box_end > end:
            raise _broken()
        yield _Entry(header[4:8], start, content, box_end)
        start = box_end


# --- WebM ----------------------------------------------------------------------------------------------------------

_EBML = b"\x1a\x45\xdf\xa3"
_DOC_TYPE = b"\x42\x82"
_SEGMENT, _TRACKS, _CLUSTER = b"\x18\x53\x80\x67", b"\x16\x54\xae\x6b", b"\x1f\x43\xb6\x75"
_SEEK_HEAD, _INFO, _CUES = b"\x11\x4d\x9b\x74", b"\x15\x49\xa9\x66", b"\x1c\x53\xbb\x6b"
_VOID = b"\xec"
_TRACK_ENTRY, _TRACK_TYPE, _TRACK_NAME = b"\xae", b"\x83", b"\x53\x6e"
# The children of a cluster: they follow it directly when its size is unknown, as in a recording by a browser.
_CLUSTER_CHILDREN = {b"\xe7", b"\xa3", b"\xa0", b"\xa7", b"\xab"}
_NEEDED = {_SEEK_HEAD, _INFO, _TRACKS, _CUES, _CLUSTER, *_CLUSTER_CHILDREN}
# Of the general information: time scale, duration, and the names of the programs that wrote the file.
_NEEDED_INFO = {b"\x2a\xd7\xb1", b"\x44\x89", b"\x4d\x80", b"\x57\x41"}
_PICTURE_TRACK, _SOUND_TRACK = 1, 2
_MAX_NUMBER_BYTES = 8


def _clean_webm(file: IO[bytes], size: int) -> None:
    budget = _Budget()
    header = _read_element(file, 0, size)
    if _find(file, header, _DOC_TYPE, budget).rstrip(b"\0") != b"webm":
        raise UnsupportedVideo
    if header.end >= size:
        raise _broken()
    segment = _read_element(file, header.end, size)
    if segment.name != _SEGMENT:
        raise _broken()
    kinds: set[int] = set()
    has_content = False
    for element in _children(file, segment, budget):
        unneeded = [element] if element.name not in _NEEDED else []
        if element.name == _TRACKS:
            tracks = [each for each in _children(file, element, budget) if each.name == _TRACK_ENTRY]
            kinds |= {int.from_bytes(_find(file, track, _TRACK_TYPE, budget), "big") for track in tracks}
            unneeded = [each for track in tracks for each in _children(file, track, budget) if each.name == _TRACK_NAME]
        elif element.name == _INFO:
            unneeded = [each for each in _children(file, element, budget) if each.name not in _NEEDED_INFO]
        for each in unneeded:  # becomes padding of the same size
            length = each.end - each.start
            size_bytes = 8 if length >= 1 + _MAX_NUMBER_BYTES else 1
            content = length - 1 - size_bytes
            file.seek(each.start)
            file.write(_VOID + (content | 1 << 7 * size_bytes).to_bytes(size_bytes, "big"))
            _write_zeros(file, each.end - content, each.end)
        has_content |= element.name == _CLUSTER
    if not has_content or segment.end < size:  # what follows is not part of the video
        raise _broken()
    if _PICTURE_TRACK not in kinds:
        raise UnsupportedVideo
    if not kinds <= {_PICTURE_TRACK, _SOUND_TRACK}:
        raise _other_track()


def _children(file: IO[bytes], parent: _Entry, budget: _Budget) -> Iterator[_Entry]:
    """Iterate over the elements in another one; a cluster of unknown size is followed by its own."""
    start = parent.content
    while start < parent.end:
        budget.spend()
        element = _read_element(file, start, parent.end)
        yield element
        start = element.end


def _find(file: IO[bytes], parent: _Entry, name: bytes, budget: _Budget) -> bytes:
    """Return the content of the first child with this name, at most 64 bytes of it; nothing if there is none."""
    for child in _children(file, parent, budget):
        if child.name == name:
            return _read(file, child.content, min(child.end - child.content, 64))
    return b""


def _read_element(file: IO[bytes], start: int, end: int) -> _Entry:
    """Return the element at a position. Raises InvalidFile if it does not end before `end`."""
    name = _read_number(file, start, end, 4)
    size = _read_number(file, start + len(name), end, _MAX_NUMBER_BYTES)
    content = start + len(name) + len(size)
    length = int.from_bytes(size, "big") & ~(1 << 7 * len(size))
    if length == (1 << 7 * len(size)) - 1:  # unknown
        if name not in (_SEGMENT, _CLUSTER):
            raise _broken()
        return _Entry(name, start, content, end if name == _SEGMENT else content)
    if content + length > end:
        raise _broken()
    return _Entry(name, start, content, content + length)


def _read_number(file: IO[bytes], start: int, end: int, max_bytes: int) -> bytes:
    """Return the bytes of a number of variable length: the leading zero bits of its first byte are its length."""
    first = _read(file, start, 1)
    length = 9 - first[0].bit_length()
    if length > max_bytes or start + length > end:
        raise _broken()
    return first + _read(file, start + 1, length - 1)


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
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGPROF)
# What the worker gets of the environment, which also has the master keys and the address of the database.
_ENVIRONMENT = ("LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_SNIFFED_BYTES = 1024
_ZIP_START = (b"PK\x03\x04", b"PK\x05\x06")
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


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
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 2048))
        if b"%%EOF" not in file.read():  # the library would take what is there for all pages
            raise InvalidFile("must be a complete PDF", "BROKEN_PDF")
        return await worker.rewrite_pdf(file, company)
    if head.startswith(_ZIP_START) and {ZIP, XLSX} & set(content_types):

        def is_workbook_of() -> bool:  # it has the entry with the sheets
            try:
                with zipfile.ZipFile(file) as archive:
                    return "xl/workbook.xml" in archive.NameToInfo
            except (zipfile.BadZipFile, ValueError, OSError):
                return False

        is_workbook = XLSX in content_types and await asyncio.to_thread(is_workbook_of)
        file.seek(0)
        if is_workbook or ZIP in content_types:
            return ValidatedFile(XLSX if is_workbook else ZIP, file)
    # UTF-16, which spreadsheets write too, has a zero in each character of ASCII.
    narrow = head.replace(b"\x00", b"")
    is_wide = head.startswith(_UTF_16_MARKS) or b"\x00" in (head[0:1], head[1:2])
    text = narrow if is_wide and len(narrow) * 3 > len(head) else head
    if CSV in content_types and head and not _NOT_IN_TEXT.search(text):
        file.seek(0)
        return ValidatedFile(CSV, file)
    if not set(content_types) & {*MEDIA_TYPES, PDF}:
        raise _unsupported(content_types)
    if is_video(head) and set(VIDEO_TYPES) & set(content_types):
        try:
            content_type = await asyncio.to_thread(clean_video, file)
        except UnsupportedVideo:
            content_type = ""
        if content_type not in content_types:
            raise _unsupported(content_types)
        file.seek(0)
        return ValidatedFile(content_type, file)
    return await worker.rewrite_picture(file, content_types, max_pixels, company)


def _unsupported(content_types: Sequence[str]) -> InvalidFile:
    return InvalidFile(f"must be one of: {', '.join(sendable_types(content_types))}", "UNSUPPORTED_FILE_TYPE")
