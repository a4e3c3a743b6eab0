"""What a file is, judged by its content: pictures are decoded and written anew, without anything but their pixels."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO

from PIL import Image, ImageOps

from coaching_service.kernel.errors import BadRequest

JPEG, PNG, WEBP, PDF = "image/jpeg", "image/png", "image/webp", "application/pdf"
PICTURES = (JPEG, PNG, WEBP)
THUMBNAIL = 320
LONGEST_SIDE = 4096

Image.MAX_IMAGE_PIXELS = None  # the limit is ours, and looked at before anything is decoded
_FORMATS = {"JPEG": JPEG, "PNG": PNG, "WEBP": WEBP}
# One at a time: a decoded picture takes many times the room of its file.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pictures")


@dataclass(frozen=True)
class Judged:
    """A file of a known kind: `file` is what is to be stored, `thumbnail` a small JPEG of a picture."""

    content_type: str
    file: IO[bytes]
    thumbnail: IO[bytes] | None = None

    def close(self) -> None:
        """Let the temporary files go."""
        self.file.close()
        if self.thumbnail is not None:
            self.thumbnail.close()


async def judge(file: IO[bytes], kinds: Sequence[str], max_pixels: int) -> Judged:
    """What `file` is, if it is whole and one of `kinds`; pictures are turned upright and stripped of all metadata.

    Raises BadRequest otherwise. Decoding happens off the event loop, one picture at a time.
    """
    head = file.read(1024)
    file.seek(0)
    if PDF in kinds and b"%PDF-" in head:
        return _pdf(file)
    return await asyncio.get_running_loop().run_in_executor(_thread, _picture, file, kinds, max_pixels)


def _pdf(file: IO[bytes]) -> Judged:
    file.seek(0, 2)
    file.seek(max(0, file.tell() - 2048))
    if b"%%EOF" not in file.read():
        raise BadRequest("The PDF is not whole")
    file.seek(0)
    return Judged(PDF, file)


def _picture(file: IO[bytes], kinds: Sequence[str], max_pixels: int) -> Judged:
    names = [name for name, kind in _FORMATS.items() if kind in kinds]
    refused = BadRequest(f"The file must be one of: {', '.join(kinds)}")
    try:
        with Image.open(file, formats=names) as picture:
            kind = _FORMATS[str(picture.format)]
            if picture.width * picture.height > max_pixels:
                return _too_large(max_pixels)
            picture.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))  # a JPEG is decoded no larger than it is kept
            upright = ImageOps.exif_transpose(picture)
            upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
            return Judged(kind, _written(upright, str(picture.format)), _small(upright))
    except (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError):
        raise refused from None


def _too_large(max_pixels: int) -> Judged:
    raise BadRequest(f"The picture must not have more than {max_pixels} pixels")


def _written(picture: Image.Image, name: str) -> IO[bytes]:
    """The pixels and nothing else: no EXIF, no place, no comments, no colour profile, no second frame."""
    mode = "RGB" if name == "JPEG" or picture.mode not in ("RGBA", "LA", "L", "P", "PA") else "RGBA"
    bare = picture.convert(mode)
    bare.info.clear()
    out = tempfile.TemporaryFile(prefix="coaching-picture-")  # noqa: SIM115 - closed with what it belongs to
    options = {"quality": 90} if name in ("JPEG", "WEBP") else {}
    bare.save(out, name, **options)
    out.seek(0)
    return out


def _small(picture: Image.Image) -> IO[bytes]:
    small = picture.convert("RGB")
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    small.info.clear()
    out = tempfile.TemporaryFile(prefix="coaching-thumbnail-")  # noqa: SIM115
    small.save(out, "JPEG", quality=80)
    out.seek(0)
    return out
