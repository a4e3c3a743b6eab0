"""Drawings for the demo company: profile photos, progress photos, exercises and a nutrition plan."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

from PIL import Image, ImageDraw

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId

_COLORS = ("#4f6d7a", "#c0d6df", "#dd6e42", "#e8dab2", "#7a9e7e", "#b56576", "#6d597a", "#355070", "#eaac8b", "#457b9d")
_THUMBNAIL = 160
Point = tuple[float, float]


def draw_profile(number: int) -> Image.Image:
    """Return a portrait: head and shoulders on a colored background."""
    image, draw = _canvas(320, 320, _COLORS[number % len(_COLORS)])
    draw.ellipse((60, 210, 260, 420), fill=_COLORS[(number + 4) % len(_COLORS)])
    draw.ellipse((105, 70, 215, 200), fill="#f1d3b3")
    draw.pieslice((100, 55, 220, 180), 180, 360, fill=("#3d2b1f", "#6b4423", "#1b1b1b")[number % 3])
    draw.arc((135, 130, 185, 175), 20, 160, fill="#7a4a2b", width=4)
    return image


def draw_progress(side: str, waist: float, number: int) -> Image.Image:
    """Return a standing figure from the `front`, `back` or `side`, as wide as a `waist` of so many centimeters."""
    image, draw = _canvas(360, 640, "#e9ecef")
    draw.line((0, 600, 360, 600), fill="#adb5bd", width=6)
    width = waist * (0.7 if side == "side" else 1.1)
    shirt = _COLORS[number % len(_COLORS)]
    draw.ellipse((145, 40, 215, 120), fill="#f1d3b3")
    draw.polygon(
        [(180 - width * 0.75, 135), (180 + width * 0.75, 135), (180 + width / 2, 330), (180 - width / 2, 330)], shirt
    )
    draw.rectangle((180 - width / 2, 330, 180 + width / 2, 380), fill="#343a40")
    legs = (-0.25,) if side == "side" else (-0.45, 0.1)
    for left in legs:
        draw.rectangle((180 + width * left, 380, 180 + width * (left + 0.35), 600), fill="#f1d3b3")
    if side == "front":
        draw.arc((165, 80, 195, 105), 20, 160, fill="#7a4a2b", width=3)
    if side != "side":
        for left in (180 - width * 0.95, 180 + width * 0.75):
            draw.rectangle((left, 140, left + width * 0.2, 320), fill="#f1d3b3")
    return image


_POSES: dict[str, tuple[Sequence[Point], Sequence[Point], Sequence[Point], Point]] = {
    # Body, arm, leg, and the center of the head.
    "row": (((170, 230), (240, 140)), ((235, 150), (330, 150)), ((170, 230), (240, 270), (230, 330)), (262, 108)),
    "run": (
        ((230, 130), (210, 230)),
        ((228, 145), (280, 180), (320, 150)),
        ((210, 230), (280, 250), (270, 320)),
        (240, 90),
    ),
    "squat": (((200, 140), (230, 230)), ((205, 155), (280, 170)), ((230, 230), (300, 240), (280, 330)), (195, 100)),
    "push": (((140, 250), (300, 200)), ((295, 205), (310, 280)), ((140, 250), (70, 320)), (335, 180)),
}


def draw_exercise(pose: str) -> Image.Image:
    """Return a stick figure in the pose `row`, `run`, `squat` or `push`."""
    image, draw = _canvas(480, 360, "#f8f9fa")
    draw.line((20, 335, 460, 335), fill="#adb5bd", width=6)
    *limbs, (x, y) = _POSES[pose]
    for limb in limbs:
        draw.line([*limb], fill="#355070", width=16, joint="curve")
    draw.ellipse((x - 30, y - 30, x + 30, y + 30), fill="#dd6e42")
    return image


def draw_plan(title: str, lines: Sequence[str]) -> Image.Image:
    """Return a page with a title, a bar for each line, and the lines themselves."""
    image, draw = _canvas(620, 877, "#ffffff")
    draw.rectangle((0, 0, 620, 90), fill="#355070")
    draw.text((40, 36), title, fill="#ffffff", font_size=24)
    for number, line in enumerate(lines):
        top = 140 + 110 * number
        draw.rectangle((40, top, 40 + 480 - 60 * (number % 4), top + 12), fill=_COLORS[number % len(_COLORS)])
        draw.text((40, top + 26), line, fill="#212529", font_size=18)
    return image


async def store(
    ctx: Context, image: Image.Image, name: str, customer_id: ObjectId | None, *, as_pdf: bool
) -> files.StoredFile:
    """Store a drawing as a page of a PDF, or as PNG with a thumbnail; it cannot be read until a record has it."""
    if as_pdf:
        return await _store(ctx, image, "PDF", "application/pdf", f"{name}.pdf", customer_id)
    thumbnail = image.copy()
    thumbnail.thumbnail((_THUMBNAIL, _THUMBNAIL))
    small = await _store(ctx, thumbnail, "PNG", "image/png", f"thumbnail-{name}.png", customer_id)
    return replace(await _store(ctx, image, "PNG", "image/png", f"{name}.png", customer_id), thumbnail_id=small.id)


async def _store(
    ctx: Context, image: Image.Image, image_format: str, content_type: str, name: str, customer_id: ObjectId | None
) -> files.StoredFile:
    content = io.BytesIO()
    image.save(content, image_format, compress_level=1)  # a third of the time; PDF ignores it
    content.seek(0)
    return await files.store(ctx, content, name=name, content_type=content_type, customer_id=customer_id)


def _canvas(width: int, height: int, color: str) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (width, height), color)
    return image, ImageDraw.Draw(image)
