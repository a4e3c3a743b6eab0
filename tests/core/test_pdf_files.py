"""PDF files are stored without what their pages do not show: metadata, scripts, embedded files."""

from __future__ import annotations

import hashlib
import io
import signal
from collections.abc import Callable
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name, OutlineItem, Pdf, Stream, String

from coaching_service.core import media
from tests.core.test_uploads import PDF, fetch, form, picture, stored
from tests.support.client import CoachClient, Reply
from tests.support.pdf_files import make_object_bomb, make_pdf, new_pdf, picture_of, written

SECRET = "canary-1f3a"
_XMP = f"<x:xmpmeta><dc:creator>{SECRET}</dc:creator></x:xmpmeta>".encode()


@pytest.fixture
async def ana(coach: CoachClient) -> str:
    """A client's path."""
    return f"/coach/customers/{(await coach.create_customer())['_id']}"


async def send(coach: CoachClient, ana: str, content: bytes) -> Reply:
    return await coach.send("POST", f"{ana}/nutrition-plans", data=form(content, "file", "plan.pdf"))


def annotate(pdf: Pdf, **entries: Any) -> None:
    square = {"Type": Name.Annot, "Rect": Array([0, 0, 90, 90]), "Subtype": Name.Link}
    annotation = pdf.make_indirect(Dictionary({f"/{key}": value for key, value in (square | entries).items()}))
    pdf.pages[0]["/Annots"] = Array([*pdf.pages[0].get("/Annots", []), annotation])


def script() -> Dictionary:
    return Dictionary(S=Name.JavaScript, JS=String(f"app.alert('{SECRET}')"))


def metadata(pdf: Pdf) -> Stream:
    return pdf.make_indirect(Stream(pdf, _XMP, {"/Type": Name.Metadata, "/Subtype": Name.XML}))


def add_author(pdf: Pdf) -> None:
    pdf.docinfo["/Author"] = SECRET
    pdf.docinfo["/Producer"] = SECRET


def add_xmp(pdf: Pdf) -> None:
    pdf.Root.Metadata = metadata(pdf)
    pdf.pages[0]["/Metadata"] = metadata(pdf)


def add_xmp_of_a_picture(pdf: Pdf) -> None:
    image = Stream(pdf, bytes(30), {f"/{name}": value for name, value in picture_of(30).items()})
    image["/Metadata"] = metadata(pdf)
    pdf.pages[0].Resources["/XObject"] = Dictionary(Im=pdf.make_indirect(image))


def add_xmp_of_marked_content(pdf: Pdf) -> None:
    """In a dictionary that is no object of its own, as drawing programs write."""
    pdf.pages[0].Resources["/Properties"] = Dictionary(MC0=Dictionary(Metadata=metadata(pdf)))


def add_private_data(pdf: Pdf) -> None:
    private = Dictionary(LastModified=String("D:20260101"), Private=String(SECRET))
    pdf.pages[0]["/PieceInfo"] = Dictionary(Program=private)


def add_named_script(pdf: Pdf) -> None:
    pdf.Root.Names = Dictionary(JavaScript=Dictionary(Names=Array([String("a"), script()])))


def add_script_of_opening(pdf: Pdf) -> None:
    pdf.Root.OpenAction = pdf.make_indirect(script())
    pdf.Root.AA = Dictionary(WC=script())
    pdf.pages[0]["/AA"] = Dictionary(O=script())


def add_script_of_a_link(pdf: Pdf) -> None:
    annotate(pdf, A=Dictionary(S=Name.URI, URI=String("https://example.com"), Next=Array([script()])))
    annotate(pdf, AA=Dictionary(E=script()))


def add_script_of_a_field(pdf: Pdf) -> None:
    field = pdf.make_indirect(Dictionary(FT=Name.Tx, T=String("weight"), AA=Dictionary(K=script(), F=script())))
    pdf.Root.AcroForm = Dictionary(Fields=Array([field]), CO=Array([field]))


def add_script_of_a_bookmark(pdf: Pdf) -> None:
    with pdf.open_outline() as outline:
        outline.root.append(OutlineItem("Week 1", action=script()))


def add_script_where_no_viewer_looks(pdf: Pdf) -> None:
    pdf.pages[0]["/Extension"] = Array([Dictionary(Deep=Array([Dictionary(A=script())]))])


def add_xfa(pdf: Pdf) -> None:
    pdf.Root.AcroForm = Dictionary(Fields=Array([]), XFA=Stream(pdf, f"<xdp>{SECRET}</xdp>".encode()))


def add_program(pdf: Pdf) -> None:
    annotate(pdf, A=Dictionary(S=Name.Launch, F=String(SECRET), Win=Dictionary(F=String(SECRET))))


def add_other_file(pdf: Pdf) -> None:
    annotate(pdf, A=Dictionary(S=Name.GoToR, F=String(f"\\\\server\\{SECRET}"), D=Array([0, Name.Fit])))
    annotate(pdf, A=Dictionary(S=Name.SubmitForm, F=String(f"https://example.com/{SECRET}")))


def add_embedded_file(pdf: Pdf) -> None:
    pdf.attachments["a.docm"] = SECRET.encode()


def add_attached_file(pdf: Pdf) -> None:
    content = pdf.make_indirect(Stream(pdf, SECRET.encode(), {"/Type": Name.EmbeddedFile}))
    annotate(pdf, Subtype=Name.FileAttachment, FS=Dictionary(F=String(SECRET), EF=Dictionary(F=content)))


def add_sound(pdf: Pdf) -> None:
    annotate(pdf, Subtype=Name.Sound, Sound=pdf.make_indirect(Stream(pdf, SECRET.encode())))


def add_former_page(pdf: Pdf) -> None:
    pdf.Root.Keep = pdf.make_indirect(Stream(pdf, b""))
    pdf.pages[0]["/Thumb"] = pdf.make_indirect(Stream(pdf, SECRET.encode()))


HIDDEN: list[Callable[[Pdf], None]] = [
    *(add_author, add_xmp, add_xmp_of_a_picture, add_xmp_of_marked_content, add_private_data, add_named_script),
    *(add_script_of_opening, add_script_of_a_link, add_script_of_a_field, add_script_of_a_bookmark),
    *(add_script_where_no_viewer_looks, add_xfa, add_program, add_other_file, add_embedded_file, add_attached_file),
    *(add_sound, add_former_page),
]


def readable(content: bytes) -> bytes:
    """Return the PDF with all that was compressed in plain bytes."""
    with pikepdf.open(io.BytesIO(content)) as pdf:
        level = pikepdf.StreamDecodeLevel.generalized
        return written(pdf, qdf=True, compress_streams=False, stream_decode_level=level)


async def test_pdf_is_stored_without_what_its_pages_do_not_show(coach: CoachClient, ana: str) -> None:
    for add in HIDDEN:
        pdf = new_pdf("Breakfast")
        add(pdf)
        sent = written(pdf)
        assert SECRET.encode() in readable(sent), add.__name__
        plan = (await send(coach, ana, sent)).ok(201)
        copy = readable((await fetch(coach, plan["url"])).raw)
        assert SECRET.encode() not in copy, add.__name__
        assert b"Breakfast" in copy
        for name in (b"/JavaScript", b"/JS", b"/XFA", b"/Launch", b"/Metadata", b"/Info", b"/EmbeddedFile"):
            assert name not in copy, (add.__name__, name)


async def test_former_version_of_a_pdf_and_bytes_around_it_are_not_stored(coach: CoachClient, ana: str) -> None:
    """A program that saves a change appends it to the file, which still has what was there before."""
    before = written(new_pdf(SECRET), compress_streams=False)
    start, number = before.rindex(b"startxref\n"), before.index(b" 0 obj\n<< /Length")
    number_of_contents = before[before.rindex(b"\n", 0, number) + 1 : number]
    changed = number_of_contents + b" 0 obj\n<< /Length 2 >>\nstream\nQ \nendstream\nendobj\n"
    table = b"xref\n" + number_of_contents + b" 1\n%010d 00000 n \n" % len(before)
    trailer = b"trailer << /Root 1 0 R /Size 6 /Prev " + before[start:].split()[1] + b" >>\n"
    sent = before + changed + table + trailer + b"startxref\n%d\n%%%%EOF\n" % (len(before) + len(changed))
    plan = (await send(coach, ana, b"\xef\xbb\xbf" + sent + b"% canary-1f3a after the end\n")).ok(201)
    copy = readable((await fetch(coach, plan["url"])).raw)
    assert SECRET.encode() not in copy
    assert b"Q " in copy


async def test_links_fields_and_pages_stay(coach: CoachClient, ana: str) -> None:
    pdf = new_pdf("Lunch", pages=3)
    annotate(pdf, A=Dictionary(S=Name.URI, URI=String("https://example.com/recipes")))
    annotate(pdf, A=Dictionary(S=Name.GoTo, D=Array([pdf.pages[2].obj, Name.XYZ, None, None, None])))
    field = Dictionary(FT=Name.Tx, T=String("weight"), V=String("82"), Subtype=Name.Widget, Rect=Array([0, 0, 9, 9]))
    pdf.Root.AcroForm = Dictionary(Fields=Array([pdf.make_indirect(field)]))
    pdf.pages[0].Resources["/XObject"] = Dictionary(EF=pdf.make_indirect(Stream(pdf, b"1 g")))
    with pdf.open_outline() as outline:
        outline.root.append(OutlineItem("Week 3", 2))
    plan = (await send(coach, ana, written(pdf))).ok(201)
    with pikepdf.open(io.BytesIO((await fetch(coach, plan["url"])).raw)) as copy:
        assert len(copy.pages) == 3
        assert [str(each.A.S) for each in copy.pages[0].Annots] == ["/URI", "/GoTo"]
        assert str(copy.pages[0].Annots[0].A.URI) == "https://example.com/recipes"
        assert copy.pages[0].Annots[1].A.D[0].objgen == copy.pages[2].obj.objgen
        assert (str(copy.Root.AcroForm.Fields[0].T), str(copy.Root.AcroForm.Fields[0].V)) == ("weight", "82")
        assert copy.pages[0].Resources.XObject.EF.read_bytes() == b"1 g"
        with copy.open_outline() as outline:
            assert [each.title for each in outline.root] == ["Week 3"]


async def test_what_is_stored_is_what_is_described_and_returned(coach: CoachClient, ana: str) -> None:
    pdf = new_pdf("Dinner")
    add_author(pdf)
    add_embedded_file(pdf)
    sent = written(pdf)
    plan = (await send(coach, ana, sent)).ok(201)
    got = await fetch(coach, plan["url"])
    assert got.raw != sent
    assert (plan["size"], got.headers["Content-Length"]) == (len(got.raw), str(len(got.raw)))
    assert got.headers["ETag"] == f'"{hashlib.sha256(got.raw).hexdigest()}"'
    part = await fetch(coach, plan["url"], Range="bytes=5-44")
    assert (part.status, part.raw) == (206, got.raw[5:45])
    again = (await send(coach, ana, got.raw)).ok(201)
    assert (await fetch(coach, again["url"])).raw == got.raw, "a copy of a copy is the same"


async def test_pdf_that_needs_a_password_is_refused_and_one_with_restrictions_stored(
    coach: CoachClient, ana: str
) -> None:
    for encryption in (
        pikepdf.Encryption(owner="owner", user="reader", R=6),
        pikepdf.Encryption(owner="owner", user="reader", R=3, aes=False, metadata=False),
    ):
        locked = written(new_pdf(), encryption=encryption)
        error = (await send(coach, ana, locked)).refused(400, "file must not need a password")
        assert error["errors"][0]["code"] == "PROTECTED_PDF"
    attachment = form(locked, "file", "plan.pdf")
    error = (await coach.send("POST", f"{ana}/messages/attachments", data=attachment)).refused(400, "password")
    assert error["errors"][0]["code"] == "PROTECTED_PDF"
    assert await stored(coach) == (0, 0)
    restricted = written(new_pdf("No printing"), encryption=pikepdf.Encryption(owner="owner", user=""))
    plan = (await send(coach, ana, restricted)).ok(201)
    assert b"No printing" in readable((await fetch(coach, plan["url"])).raw)


DAMAGED = {
    "cut off": PDF[:-10],
    "cut off and ended": PDF[:180] + b"\n%%EOF\n",
    "no objects": b"%PDF-1.7\n%%EOF\n",
    "an object": b"%PDF-1.7\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n",
    "noise": b"%PDF-1.4 " + b"obj 1 0 endobj <<" * 5000 + b" %%EOF",
    "pages that contain themselves": PDF.replace(b"/Kids [ 3 0 R ]", b"/Kids [ 2 0 R ]"),
    "no page": PDF.replace(b"/Count 1 /Kids [ 3 0 R ]", b"/Count 0 /Kids [       ]"),
    "deeply nested": PDF.replace(b"<< /Pages 2 0 R", b"<< /A " + b"[" * 9000 + b"]" * 9000 + b" /Pages 2 0 R"),
}


async def test_damaged_pdf_is_refused(coach: CoachClient, ana: str) -> None:
    for name, content in DAMAGED.items():
        error = (await send(coach, ana, content)).refused(400, "file must be a complete PDF")
        assert error["errors"][0]["code"] == "BROKEN_PDF", name
    assert await stored(coach) == (0, 0)
    (await send(coach, ana, PDF.replace(b"0000000064 00000 n", b"0000000094 00000 n"))).ok(201)  # a wrong offset


@pytest.mark.parametrize("reason", ["time", "crash"])
async def test_pdf_that_is_too_complex_is_refused_and_the_next_file_accepted(
    coach: CoachClient, ana: str, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    """A third attempt would fail like the second: 400, not 503."""
    worker = coach.ctx.services.media_worker
    with monkeypatch.context() as limits:
        if reason == "time":
            limits.setattr(media, "_PDF_CPU_SECONDS", 0.05)
            content = make_object_bomb(60_000_000)
        else:
            content = make_pdf()
            request = worker._request

            async def crash(message: Any, files: Any) -> Any:
                worker._connect()
                assert worker._process is not None
                worker._process.send_signal(signal.SIGSEGV)
                return await request(message, files)

            limits.setattr(worker, "_request", crash)
        error = (await send(coach, ana, content)).refused(400, "file must be simpler")
    assert error["errors"][0]["code"] == "COMPLEX_PDF"
    assert await stored(coach) == (0, 0)
    (await send(coach, ana, PDF)).ok(201)
    data = form(picture(), createdAt="2026-03-02", imageSideIndex="1")
    (await coach.send("POST", f"{ana}/progress-photos", data=data)).ok(201)
