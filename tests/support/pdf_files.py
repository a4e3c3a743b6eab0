"""Small PDF files, as they are stored: writing them again, as an upload does, results in the same bytes."""

from __future__ import annotations

import io
import random
import struct
import zlib
from typing import Any

import pikepdf
from pikepdf import Dictionary, Name, Pdf, Stream


def make_pdf(text: str = "Plan", *, size: int = 0, pages: int = 1) -> bytes:
    """Return a PDF with a text on each of its pages, and a picture of at least `size` bytes, which is noise."""
    pdf = new_pdf(text, pages)
    if size:
        noise = Stream(pdf, random.Random(size).randbytes(size))
        for name, value in picture_of(size).items():
            noise[f"/{name}"] = value
        pdf.pages[0].Resources["/XObject"] = Dictionary(Im=pdf.make_indirect(noise))
    return _written_twice(pdf)


def picture_of(size: int) -> dict[str, Any]:
    """The dictionary of a grey picture with one row of `size` pixels."""
    names = {"Type": Name.XObject, "Subtype": Name.Image, "ColorSpace": Name.DeviceGray}
    return {**names, "Width": size, "Height": 1, "BitsPerComponent": 8}


def new_pdf(text: str = "Plan", pages: int = 1) -> Pdf:
    """Return a PDF to which a test may add what it likes."""
    pdf = Pdf.new()
    font = pdf.make_indirect(Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica))
    for _ in range(pages):
        page = pdf.add_blank_page(page_size=(595, 842))
        page.Resources = Dictionary(Font=Dictionary(F1=font))
        letters = text.encode("latin-1", "replace").replace(b"(", b"").replace(b")", b"")
        page.Contents = Stream(pdf, b"BT /F1 24 Tf 72 720 Td (" + letters + b") Tj ET")
    return pdf


def written(pdf: Pdf, **options: Any) -> bytes:
    """Return the bytes of a PDF."""
    out = io.BytesIO()
    pdf.save(out, fix_metadata_version=False, **options)
    return out.getvalue()


def _written_twice(pdf: Pdf) -> bytes:
    """Return the bytes of a PDF as the service writes them. Its identifier is of what a second copy has, too."""
    options = {"stream_decode_level": pikepdf.StreamDecodeLevel.none, "deterministic_id": True}
    with pikepdf.open(io.BytesIO(written(pdf, **options))) as copy:
        del copy.trailer["/ID"]
        return written(copy, **options)


def make_object_bomb(size: int) -> bytes:
    """Return a small PDF whose objects are in a stream of `size` bytes, a multiple of 100, once decompressed."""
    objects = b"<</Type/Catalog/Pages 2 0 R>> <</Type/Pages/Count 1/Kids[3 0 R]>> ", b"<</Type/Page/Parent 2 0 R>>"
    numbers = b"1 0 2 %d 3 %d " % (objects[0].index(b" <<") + 1, len(objects[0]) + size)
    packer = zlib.compressobj(9)
    packed = [packer.compress(numbers + objects[0])]
    packed += [packer.compress(b" " * (size // 100)) for _ in range(100)]
    packed += [packer.compress(objects[1]), packer.flush()]
    content = b"".join(packed)
    head = b"%%PDF-1.7\n4 0 obj\n<</Type/ObjStm/N 3/First %d/Filter/FlateDecode/Length %d>>stream\n"
    file = head % (len(numbers), len(content)) + content + b"\nendstream\nendobj\n"
    rows = [(0, 0, 65535), (2, 4, 0), (2, 4, 1), (2, 4, 2), (1, file.index(b"4 0 obj"), 0), (1, len(file), 0)]
    table = b"".join(struct.pack(">BIH", *row) for row in rows)
    entries = b"/Type/XRef/Size 6/W[1 4 2]/Root 1 0 R/Length %d" % len(table)
    table_object = b"5 0 obj\n<<" + entries + b">>stream\n" + table + b"\nendstream\nendobj\n"
    return file + table_object + b"startxref\n%d\n%%%%EOF\n" % len(file)
