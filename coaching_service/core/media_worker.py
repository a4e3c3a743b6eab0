"""The program of the media worker process, which `media.MediaWorker` starts: rewrites pictures and PDF files.

It is run by its path and imports nothing from the service. A request is one JSON object on a socket, with its `kind`
and open files: the source, and empty ones for the results (of a picture, the copy and its thumbnail). A reply is one
JSON object.
"""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

try:
    from pillow_heif import register_heif_opener
except ImportError:  # the extra "heic" is not installed: HEIC pictures are of an unsupported type
    pass
else:
    register_heif_opener(thumbnails=False, depth_images=False, aux_images=False, decode_threads=1)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer
    from pikepdf import Object, Pdf

THUMBNAIL_SIDE = 320
MAX_SIDE = 4096
MAX_FRAMES = 2000
MAX_MEMORY_BYTES = 1_500_000_000
# The longer side of a JPEG is scaled to at least this: photos of 48, 50 and 200 megapixels then have about MAX_SIDE.
_SCALED_SIDE = 4000
# Pictures that are stored in another format: MPO is a JPEG file with several pictures, as phones and 3D cameras write.
_STORED_AS = {"MPO": "JPEG", "HEIF": "JPEG"}
MAX_MESSAGE_BYTES = 4096
# What is removed from each dictionary of a PDF: metadata, and private data of programs.
_REMOVED_KEYS = {"/Metadata", "/PieceInfo", "/LastModified", "/CreatorInfo"}
# Actions that run scripts or programs, play media, open other files, or send data. Links have the action /URI or /GoTo.
_REMOVED_ACTIONS = frozenset(
    f"/{name}"
    for name in (
        *("JavaScript", "Launch", "ImportData", "SubmitForm", "GoToR", "GoToE"),
        *("Rendition", "Movie", "Sound", "RichMediaExecute"),
    )
)

# Pillow compares the size of a picture, and of each frame, with `Image.MAX_IMAGE_PIXELS` before it reserves memory.
warnings.simplefilter("error", Image.DecompressionBombWarning)


def main(connection: socket.socket) -> None:
    """Serve one request after another until the connection closes."""
    kinds: dict[str, Callable[..., str]] = {"picture": rewrite_picture, "pdf": rewrite_pdf}
    while True:
        message, files, _, _ = socket.recv_fds(connection, MAX_MESSAGE_BYTES, 3)
        if not message:
            return
        source = os.fdopen(files[0], "rb")
        targets = [os.fdopen(file, "wb", buffering=0) for file in files[1:]]
        with source, ExitStack() as stack:
            for target in targets:
                stack.enter_context(target)
            request = json.loads(message)
            rewrite = kinds[request.pop("kind")]
            try:
                complete = (cast("IO[bytes]", _Complete(target)) for target in targets)
                reply = {"format": rewrite(source, *complete, **request)}
            except Exception as error:  # noqa: BLE001 - decoders fail with any exception on broken files
                is_full = isinstance(error, OSError) and error.errno in _NO_SPACE
                reply = {"error": "space" if is_full else _ERRORS.get(type(error), "broken")}
        connection.sendall(json.dumps(reply).encode())


class _Complete(io.RawIOBase):
    """A file that takes all that is written. Pillow and pikepdf ignore that a full disk takes only a part of it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: Buffer) -> int:
        """Write `content`; returns its number of bytes. Raises OSError if there is no space for all of it."""
        left = memoryview(content)
        size = left.nbytes
        while left:
            left = left[self._file.write(left) :]
        return size


class TooManyPixels(Exception):
    """The image, or all frames of an animation together, have more pixels than the limit."""


class ProtectedPdf(Exception):
    """The PDF cannot be read without a password."""


class BrokenPdf(Exception):
    """The PDF has no page."""


_ERRORS: dict[type[Exception], str] = {
    TooManyPixels: "pixels",
    MemoryError: "memory",
    Image.DecompressionBombWarning: "pixels",
    Image.DecompressionBombError: "pixels",
    UnidentifiedImageError: "type",
    ProtectedPdf: "protected",
}
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def rewrite_picture(
    source: IO[bytes],
    image: IO[bytes],
    thumbnail: IO[bytes],
    *,
    formats: Sequence[str],
    pixels: int,
    jpeg_pixels: int = 0,
    animated: bool,
) -> str:
    """Write the picture in `source` to `image`, and a JPEG of at most 320 x 320 pixels to `thumbnail`.

    Returns the format of the copy: JPEG for a HEIC picture. The copy is upright, in sRGB and holds nothing but pixels:
    no EXIF, no location, no comments. With `animated`, a GIF or WebP keeps its frames, which together have at most
    `pixels` pixels; otherwise only the first picture is kept. A JPEG that is not progressive may have `jpeg_pixels`,
    because it is scaled down while it is decoded.
    Raises TooManyPixels, and any other exception if the source is not a complete picture of one of the `formats`.
    """
    source.seek(0)
    Image.MAX_IMAGE_PIXELS = max(pixels, jpeg_pixels)
    # HEIF is stored as JPEG; Pillow opens MPO as JPEG.
    opened = [*formats, "HEIF"] if "JPEG" in formats and "HEIF" in Image.OPEN else list(formats)
    with Image.open(source, formats=opened) as picture:
        format_name = _STORED_AS.get(str(picture.format), str(picture.format))
        # At any scale, a progressive JPEG needs memory for all of its pixels.
        is_scaled = picture.format in ("JPEG", "MPO")
        if picture.width * picture.height > pixels and (not is_scaled or "progressive" in picture.info):
            raise TooManyPixels
        scales, side = (1, 2, 4, 8) if is_scaled else (1,), max(picture.size)
        scale = next(each for each in scales if each == scales[-1] or side < 2 * each * _SCALED_SIDE)
        Image.MAX_IMAGE_PIXELS = pixels
        if animated and format_name in ("GIF", "WEBP") and getattr(picture, "is_animated", False):
            _rewrite_animation(picture, image, thumbnail, pixels)
            return format_name
        if scale > 1:
            picture.draft("RGB", (picture.width // scale, picture.height // scale))
        picture.load()
        ImageOps.exif_transpose(picture, in_place=True)
        converted = _to_8_bit_srgb(picture)
        converted = _on_white(converted) if format_name == "JPEG" else converted
        converted.info.clear()
        converted.thumbnail((MAX_SIDE, MAX_SIDE))
        converted.save(image, format_name, **({"quality": 90} if format_name in ("JPEG", "WEBP") else {}))
        converted.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
        _on_white(converted).save(thumbnail, "JPEG", quality=80)
        return format_name


def _rewrite_animation(picture: Image.Image, image: IO[bytes], thumbnail: IO[bytes], max_pixels: int) -> None:
    frames: list[Image.Image] = []
    durations: list[int] = []
    total = 0
    while True:
        try:
            picture.seek(len(frames))
        except EOFError:  # the end is where no frame follows; a broken one raises another exception
            break
        picture.load()
        total += picture.width * picture.height
        if total > max_pixels or len(frames) == MAX_FRAMES:
            raise TooManyPixels
        durations.append(int(picture.info.get("duration") or 100))
        converted = _to_8_bit_srgb(picture)
        converted = converted.copy() if converted is picture else converted
        converted.info.clear()
        converted.thumbnail((MAX_SIDE, MAX_SIDE))
        frames.append(converted)
    options = {"save_all": True, "append_images": frames[1:], "duration": durations, "loop": 0}
    frames[0].save(image, str(picture.format), **options)
    frames[0].thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    _on_white(frames[0]).save(thumbnail, "JPEG", quality=80)


def _to_8_bit_srgb(picture: Image.Image) -> Image.Image:
    """Return the picture as grey, RGB or RGBA with 8 bits a channel, in sRGB."""
    profile = picture.info.get("icc_profile")
    if picture.mode.startswith("I;16"):
        return picture.point(lambda value: value * (1 / 256)).convert("L")
    mode = "RGBA" if picture.has_transparency_data else "L" if picture.mode in ("1", "L") else "RGB"
    if profile and picture.mode in ("RGB", "RGBA", "CMYK"):
        with suppress(ImageCms.PyCMSError, OSError, ValueError):  # the profile is broken or of another colour space
            own, standard = ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB")
            in_place = picture.mode == mode
            new_mode = None if in_place else mode
            converted = ImageCms.profileToProfile(picture, own, standard, outputMode=new_mode, inPlace=in_place)
            return picture if converted is None else converted
    return picture if picture.mode == mode else picture.convert(mode)


def _on_white(picture: Image.Image) -> Image.Image:
    if picture.mode != "RGBA":
        return picture
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def rewrite_pdf(source: IO[bytes], target: IO[bytes], *, cpu_seconds: float) -> str:
    """Write the pages of the PDF in `source` to `target`, with their links and form fields; returns the format.

    Without metadata, scripts, embedded files, media, and actions that start programs, open other files or send data.
    What no page refers to, such as earlier versions, is not copied. The same pages result in the same bytes. A PDF that
    takes more than `cpu_seconds` ends this process: the library cannot be interrupted in another way.
    Raises ProtectedPdf, and any other exception if the source is not a PDF with pages.
    """
    import pikepdf

    source.seek(0)
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        with pikepdf.open(cast("BinaryIO", source), access_mode=pikepdf.AccessMode.mmap) as pdf:
            if not pdf.pages:
                raise BrokenPdf
            _remove_hidden_parts(pdf)
            pdf.save(
                cast("BinaryIO", target),
                fix_metadata_version=False,
                stream_decode_level=pikepdf.StreamDecodeLevel.none,
                deterministic_id=True,
            )
    except pikepdf.PasswordError:
        raise ProtectedPdf from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "PDF"


def _remove_hidden_parts(pdf: Pdf) -> None:
    from pikepdf import Dictionary, explicit_conversion
    from pikepdf.sanitize import Sanitizer

    sanitizer = Sanitizer().remove_javascript().remove_attachments().remove_multimedia().remove_thumbnails()
    sanitizer.remove_search_index().remove_web_capture().remove_private_app_data().remove_collection().apply(pdf)
    form = pdf.Root.get("/AcroForm")
    # The signatures of /Perms are of the original; /NeedsRendering says that only /XFA has the content.
    parts = [(pdf.trailer, ("/Info", "/ID")), (pdf.Root, ("/Perms", "/NeedsRendering")), (form, ("/XFA",))]
    for part, names in parts:
        for name in names:
            if isinstance(part, Dictionary) and name in part:
                del part[name]
    with explicit_conversion():
        for entry in pdf.objects:
            _clean_object(entry)


def _clean_object(entry: Object) -> None:
    """Remove metadata, embedded files and actions from an object of a PDF and from what it directly contains."""
    from pikepdf import Array, Dictionary, Name, Stream

    left = [entry]
    while left:
        part = left.pop()
        contained: Iterable[Object | None] = ()
        if isinstance(part, (Dictionary, Stream)):
            keys = part.keys()
            is_action = "/S" in keys and isinstance(action := part["/S"], Name) and str(action) in _REMOVED_ACTIONS
            is_file = "/EF" in keys and not keys.isdisjoint(("/F", "/UF"))
            # All of an action, so that nothing of it remains and its place is empty.
            for key in keys if is_action else keys & _REMOVED_KEYS | ({"/EF"} if is_file else set()):
                del part[key]
            contained = (value for _, value in part.items())
        elif isinstance(part, Array):
            contained = part
        left += [value for value in contained if value is not None and not value.is_indirect]


if __name__ == "__main__":
    if sys.platform == "linux":  # elsewhere, memory is limited by the sizes of pictures alone
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    main(socket.socket(fileno=int(sys.argv[1])))
