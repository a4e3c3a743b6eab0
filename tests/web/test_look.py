"""The look: text and space come from scales, colors from roles, and each pair of colors is legible (WCAG AA)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STYLES = Path(__file__).parents[2] / "coaching_service" / "web" / "static"
BASE = (STYLES / "base.css").read_text("utf-8")
TOKENS = BASE[: BASE.index("*, ::before")]
DARK = re.search(r"prefers-color-scheme: dark\) \{(.*?)\n\}", TOKENS, re.DOTALL)
SURFACES = ("paper", "card", "wash")
TEXTS = [(text, surface) for text in ("ink", "soft", "accent", "bad", "warn", "info") for surface in SURFACES]
TEXTS += [(text, f"{color}-wash") for color in ("accent", "bad", "warn", "info") for text in ("ink", color)]
TEXTS += [("accent-ink", "accent"), ("bad-ink", "bad")]
SHAPES = [(shape, surface) for shape in ("focus", "control-line") for surface in ("paper", "card")]
# Properties whose lengths are steps of a scale; the width of a border or an outline is not.
SCALED = re.compile(
    r"(?<![\w-])(font-size|border-radius|gap|(?:row|column)-gap|(?:padding|margin)(?:-[a-z-]+)?): ([^;{}]+)"
)


def colors_of(text: str) -> dict[str, str]:
    return {name: value.strip() for name, value in re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{3,6})\b", text)}


def luminance(color: str) -> float:
    """The relative luminance of WCAG 2.2."""
    digits = color[1:] if len(color) == 7 else "".join(digit * 2 for digit in color[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(text: str, surface: str) -> float:
    """The contrast ratio of WCAG 2.2, from 1 to 21."""
    low, high = sorted((luminance(text), luminance(surface)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_a_contrast_of_4_5_and_controls_of_3(theme: str) -> None:
    assert DARK is not None
    light, dark = colors_of(TOKENS.replace(DARK[0], "")), colors_of(DARK[1])
    assert set(light) - set(dark) == {"media", "on-media", "mark", "mark-edge"}, "on pictures, in both themes"
    colors = light | dark if theme == "dark" else light
    low = [(pair, ratio) for pair in TEXTS if (ratio := contrast(*(colors[name] for name in pair))) < 4.5]
    low += [(pair, ratio) for pair in SHAPES if (ratio := contrast(*(colors[name] for name in pair))) < 3]
    assert low == []


@pytest.mark.parametrize("name", ["base.css", "components.css", "charts.css", "print.css"])
def test_rules_use_the_scales_and_the_roles(name: str) -> None:
    rules = re.sub(r"/\*.*?\*/", "", (STYLES / name).read_text("utf-8").replace(TOKENS, ""), flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*[;}])|\brgba?\(|\bhsla?\(", rules) == []
    literals = [f"{name}: {value}" for name, value in SCALED.findall(rules) if re.search(r"\d(?:rem|px)\b", value)]
    assert set(literals) <= {"font-size: 10.5px"}, "the units of a chart"
    defined = set(re.findall(r"(--[a-z0-9-]+):", TOKENS + rules))
    assert set(re.findall(r"var\((--[a-z0-9-]+)", rules)) <= defined
