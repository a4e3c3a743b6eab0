"""Write a new resource of clients: a package of the layer `progress`, its registration, a test, and lines of policies.

    scripts/new-resource NAME [--singular NAME]

NAME is the plural in snake case, such as `goals` or `race_goals`. See docs/adding-a-resource.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "scripts" / "resource_template"
MODULES = ("__init__.py", "models.py", "store.py", "service.py", "routes.py")


def singular_of(plural: str) -> str:
    """Return the singular of a regular English plural."""
    return re.sub(r"ies$", "y", plural) if plural.endswith("ies") else plural.removesuffix("s")


def names_of(plural: str, singular: str) -> dict[str, str]:
    """Return what the templates name, by placeholder."""

    def camel(name: str) -> str:
        first, *others = name.split("_")
        return first + "".join(word.capitalize() for word in others)

    words = singular.replace("_", " ")
    article = "an" if words[0] in "aeiou" else "a"
    plural_words = plural.replace("_", " ")
    return {
        "__plural__": plural,
        "__singular__": singular,
        "__Singular__": "".join(word.capitalize() for word in singular.split("_")),
        "__collection__": camel(plural),
        "__parameter__": f"{camel(singular)}Id",
        "__path__": plural.replace("_", "-"),
        "__plural_words__": plural_words,
        "__Plural_words__": plural_words.capitalize(),
        "__singular_words__": words,
        "__a_singular__": f"{article} {words}",
        "__A_singular__": f"{article} {words}".capitalize(),
    }


def fill(template: str, names: dict[str, str]) -> str:
    """Return a template with its placeholders replaced."""
    return re.sub("|".join(names), lambda match: names[match[0]], template)


# The lines that register a resource: the file, the line before which or after which they are added, and the lines.
AFTER = (
    (
        "coaching_service/features.py",
        "from coaching_service.progress.notes import tools as notes_tools\n",
        "from coaching_service.progress.__plural__ import routes as __plural__\n",
    ),
    ("coaching_service/features.py", "    notes.routes,\n", "    __plural__.routes,\n"),
    (
        "coaching_service/features.py",
        '    ("Notes", "Notes of coaches about a client."),\n',
        '    ("__Plural_words__", "__Plural_words__ of clients."),\n',
    ),
    ("pyproject.toml", "form_responses : notes", " : __plural__"),
    (
        "tests/support/declared_world.py",
        '    changed = await coach.post(f"{client}/notes", {"content": "To be undone"})\n',
        '    __singular__ = (await coach.post(f"{client}/__path__", {"title": "An example"})).ok(201)\n',
    ),
    (
        "tests/support/declared_world.py",
        '        "noteId": note["_id"],\n',
        '        "__parameter__": __singular__["_id"],\n',
    ),
)
# The lines of policies, which are written a second time on purpose: read them, and correct them.
POLICIES = {
    "tests/contract/policy.txt": """
# __Plural_words__
GET /coach/customers/{customerId}/__path__ | coach customers.view
POST /coach/customers/{customerId}/__path__ | coach customers.edit
PATCH /coach/customers/{customerId}/__path__/{__parameter__} | coach customers.edit
DELETE /coach/customers/{customerId}/__path__/{__parameter__} | coach customers.edit
""",
    "tests/contract/indexes.txt": "__collection__: companyId customerId createdAt _id\n",
    "tests/contract/placements.txt": "__collection__: companyId\n",
    "tests/contract/events.txt": """
POST /coach/customers/{customerId}/__path__ | -
PATCH /coach/customers/{customerId}/__path__/{__parameter__} | -
DELETE /coach/customers/{customerId}/__path__/{__parameter__} | -
""",
}


def add_after(path: Path, anchor: str, addition: str) -> None:
    """Add text after the one place that has `anchor`. Raises SystemExit if it is not there once."""
    text = path.read_text("utf-8")
    if text.count(anchor) != 1:
        raise SystemExit(f"{path.relative_to(ROOT)} has {anchor.strip()!r} {text.count(anchor)} times: adapt AFTER")
    path.write_text(text.replace(anchor, anchor + addition), "utf-8")


def append_lines(path: Path, lines: str) -> None:
    """Append lines of a policy; `|` is replaced by spaces up to its column."""
    text = path.read_text("utf-8").rstrip("\n") + "\n"
    columns = [re.match(r"\S+ \S+ +", line) for line in text.splitlines() if re.match(r"(GET|POST) /", line)]
    width = max((len(column[0]) for column in columns if column), default=0)
    for line in lines.splitlines():
        name, bar, value = line.partition(" | ")
        text += f"{name.ljust(width - 1)} {value}\n" if bar else f"{line}\n"
    path.write_text(text, "utf-8")


def main(arguments: list[str]) -> int:
    """Write the files, and print what is left to do. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plural", metavar="NAME")
    parser.add_argument("--singular", help="for an irregular plural")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", options.plural):
        parser.error("NAME has small letters and underscores only")
    names = names_of(options.plural, options.singular or singular_of(options.plural))
    package = ROOT / "coaching_service" / "progress" / options.plural
    if package.exists():
        parser.error(f"{package.relative_to(ROOT)} exists")
    package.mkdir()
    for module in MODULES:
        (package / module).write_text(fill((TEMPLATES / f"{module}.txt").read_text("utf-8"), names), "utf-8")
    test = ROOT / "tests" / "progress" / f"test_{options.plural}.py"
    test.write_text(fill((TEMPLATES / "test.py.txt").read_text("utf-8"), names), "utf-8")
    for path, anchor, addition in AFTER:
        add_after(ROOT / path, anchor, fill(addition, names))
    for path, lines in POLICIES.items():
        append_lines(ROOT / path, fill(lines, names))
    print(f"Wrote {package.relative_to(ROOT)} and {test.relative_to(ROOT)}. Continue with docs/adding-a-resource.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
