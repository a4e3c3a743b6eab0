"""Write the browser libraries, the sprite of icons and the typeface into coaching_service/web/static/vendor.

    scripts/vendor [--renew]

`scripts/vendor.json` has the version of each library, the hash of its package, and which of its files are served; each
package is downloaded by npm and compared with that hash. `scripts/icons.txt` names the icons. Of the typeface, only
what pages use is written. `--renew` takes the newest version within each library's range instead, and writes its hash
to `scripts/vendor.json`.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TypedDict

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

ROOT = Path(__file__).parents[1]
LIBRARIES = ROOT / "scripts" / "vendor.json"
ICONS = ROOT / "scripts" / "icons.txt"
TARGET = ROOT / "coaching_service" / "web" / "static" / "vendor"
LICENSES = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "OFL-1.1"}
WEIGHTS = (400, 600)
# The files of the typeface: the part of the package, and its characters (all, or of Latin Extended-A: a page loads that
# file only if it has one of them).
TYPEFACE: dict[str, tuple[str, range | None]] = {
    "inter.woff2": ("latin", None),
    "inter-extended.woff2": ("latin-ext", range(0x100, 0x180)),
}
FEATURES = ["ccmp", "kern", "locl", "mark", "mkmk", "tnum"]


class Library(TypedDict):
    """A library of `scripts/vendor.json`: `files` are paths in its package, which are served."""

    folder: str
    range: str
    version: str
    integrity: str
    files: list[str]


def main() -> None:
    """Replace the folder of all libraries."""
    parser = argparse.ArgumentParser(description="Write the browser libraries and the sprite of icons.")
    parser.add_argument("--renew", action="store_true", help="take the newest version within each range")
    renew = parser.parse_args().renew
    libraries: dict[str, Library] = json.loads(LIBRARIES.read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="coaching-vendor-") as name:
        written = Path(name) / "vendor"
        manifest = [write_library(package, library, written, renew=renew) for package, library in libraries.items()]
        (written / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
        shutil.rmtree(TARGET, ignore_errors=True)
        shutil.copytree(written, TARGET)
    if renew:
        LIBRARIES.write_text(json.dumps(libraries, indent=2) + "\n", "utf-8")


def write_library(package: str, library: Library, parent: Path, *, renew: bool) -> dict[str, object]:
    """Download one library, write its files and its license into its folder, and return its entry of the manifest."""
    folder = parent / library["folder"]
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="coaching-vendor-") as name:
        source = download(package, library, Path(name), renew=renew)
        description = json.loads((source / "package.json").read_text("utf-8"))
        if description["license"] not in LICENSES:
            raise SystemExit(f"{package}: the license {description['license']!r} is not in LICENSES; read it first.")
        for path in [*library["files"], "LICENSE"]:
            shutil.copy(source / path, folder / Path(path).name)
        if package == "lucide-static":
            (folder / "icons.svg").write_text(create_sprite(source / "icons"), "utf-8")
        if package == "@fontsource-variable/inter":
            write_typeface(source / "files", folder)
    return {
        "name": package,
        "version": library["version"],
        "license": description["license"],
        "integrity": library["integrity"],
        "files": {
            f"{library['folder']}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.iterdir())
        },
    }


def download(package: str, library: Library, folder: Path, *, renew: bool) -> Path:
    """Return the unpacked package. With `renew` the version and the hash of `library` are replaced."""
    version = library["range"] if renew else library["version"]
    command = ["npm", "pack", "--silent", "--json", "--ignore-scripts", f"{package}@{version}"]
    output = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603 - npm, with names of vendor.json
    (packed,) = json.loads(output)
    (archive,) = folder.glob("*.tgz")
    digest = hashlib.sha512(archive.read_bytes()).digest()
    integrity = f"sha512-{base64.b64encode(digest).decode()}"
    if renew:
        if packed["version"] != library["version"]:
            print(f"{package}: {library['version']} is now {packed['version']}")
        library["version"], library["integrity"] = packed["version"], integrity
    elif integrity != library["integrity"]:
        raise SystemExit(f"{package} {version}: the package has the hash {integrity}, not that of {LIBRARIES.name}.")
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    return folder / "package"


def create_sprite(folder: Path) -> str:
    """Return one SVG with a symbol for each icon of `scripts/icons.txt`; the stylesheet sets its lines and colors."""
    symbols = []
    for name in read_names(ICONS):
        image = (folder / f"{name}.svg").read_text("utf-8")
        drawing = re.fullmatch(r'.*<svg\b[^>]*viewBox="0 0 24 24"[^>]*>(.*)</svg>\s*', image, re.DOTALL)
        if drawing is None:
            raise SystemExit(f"The icon {name} has another form than expected.")
        lines = "".join(line.strip().replace(" />", "/>") for line in drawing[1].splitlines())
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{lines}</symbol>')
    return '<svg xmlns="http://www.w3.org/2000/svg">\n' + "\n".join(symbols) + "\n</svg>\n"


def write_typeface(source: Path, folder: Path) -> None:
    """Write the files of the typeface, with only the weights, characters and features that pages use."""
    for name, (part, characters) in TYPEFACE.items():
        font = TTFont(source / f"inter-{part}-wght-normal.woff2", recalcTimestamp=False)
        subsetter = Subsetter(Options(layout_features=FEATURES, hinting=False, notdef_outline=True))
        subsetter.populate(unicodes=sorted(set(characters or font.getBestCmap()) & set(font.getBestCmap())))
        subsetter.subset(font)
        between = BytesIO()  # a font that is loaded lazily cannot be cut twice
        font.flavor = None
        font.save(between)
        font = instantiateVariableFont(TTFont(between, recalcTimestamp=False), {"wght": WEIGHTS})
        font.flavor = "woff2"
        font.save(folder / name)


def read_names(path: Path) -> list[str]:
    """The lines of a file without comments and empty lines."""
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


if __name__ == "__main__":
    main()
