"""Pictures decoded and written anew, in a process of its own: see `media`, which starts it and asks it.

It is run by its path and imports nothing of the service. A question is one JSON object on a socket, with three open
files: the picture, and two empty ones for the picture written anew and its thumbnail.
"""

from __future__ import annotations

import io
import json
import os
import socket
import sys
from collections.abc import Sequence
from typing import IO

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

THUMBNAIL = 320
MAX_SIDE = 4096
MAX_BYTES = 4096  # of a question, of an answer

Image.MAX_IMAGE_PIXELS = None  # the limit is ours, and looked at before anything is decoded


def main(line: socket.socket) -> None:
    """Answer one question after another, until the other side hangs up."""
    while True:
        told, files, _, _ = socket.recv_fds(line, MAX_BYTES, 3)
        if not told:
            return
        source, whole, small = (os.fdopen(each, "r+b") for each in files)
        with source, whole, small:
            question = json.loads(told)
            try:
                answer = {"format": rewrite(source, whole, small, question["formats"], question["pixels"])}
            except Exception as error:  # noqa: BLE001 - decoders fail in any way on what is no whole picture
                answer = {"refused": _REASONS.get(type(error), "broken")}
        line.sendall(json.dumps(answer).encode())


class TooManyPixels(Exception):
    """Larger than may be decoded."""


_REASONS: dict[type[Exception], str] = {TooManyPixels: "pixels", UnidentifiedImageError: "kind"}


def rewrite(source: IO[bytes], whole: IO[bytes], small: IO[bytes], formats: Sequence[str], pixels: int) -> str:
    """Write the picture in `source` to `whole`, and a JPEG of at most 320 pixels to `small`; gives its format.

    Upright, in sRGB, without anything but its pixels: no EXIF, no place, no comments, no second frame. Raises
    TooManyPixels, or anything else for what is no whole picture of one of the `formats`.
    """
    source.seek(0)
    with Image.open(source, formats=list(formats)) as picture:
        name = str(picture.format)
        if picture.width * picture.height > pixels:
            raise TooManyPixels
        picture.draft("RGB", (MAX_SIDE, MAX_SIDE))  # a JPEG is decoded no larger than it is kept
        picture.load()
        ImageOps.exif_transpose(picture, in_place=True)
        plain = _plain(picture)
        plain.info.clear()
        plain.thumbnail((MAX_SIDE, MAX_SIDE))
        plain.save(whole, name, **({"quality": 90} if name in ("JPEG", "WEBP") else {}))
        plain.thumbnail((THUMBNAIL, THUMBNAIL))
        _opaque(plain).save(small, "JPEG", quality=80)
        return name


def _plain(picture: Image.Image) -> Image.Image:
    """With 8 bits a channel, as grey, RGB or RGBA, in the colours that browsers take for granted."""
    profile = picture.info.get("icc_profile")
    if picture.mode.startswith("I;16"):
        return picture.point(lambda value: value * (1 / 256)).convert("L")
    mode = "RGBA" if picture.has_transparency_data else "L" if picture.mode in ("1", "L") else "RGB"
    if profile and picture.mode in ("RGB", "RGBA", "CMYK"):
        try:
            return _in_srgb(picture, profile, mode)
        except (ImageCms.PyCMSError, OSError, ValueError):  # a profile that is broken, or of another kind
            pass
    return picture if picture.mode == mode else picture.convert(mode)


def _in_srgb(picture: Image.Image, profile: bytes, mode: str) -> Image.Image:
    theirs = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    inplace = picture.mode == mode
    converted = ImageCms.profileToProfile(
        picture, theirs, ImageCms.createProfile("sRGB"), outputMode=None if inplace else mode, inPlace=inplace
    )
    return picture if converted is None else converted


def _opaque(picture: Image.Image) -> Image.Image:
    if picture.mode != "RGBA":
        return picture
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
