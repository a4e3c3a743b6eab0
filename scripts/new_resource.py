"""Write a new resource of clients: a package of the layer `progress`, its registration, a test, and lines of policies.

    scripts/new-resource NAME [--singular NAME]

NAME is the plural in snake case, such as `goals` or `race_goals`. It may be run again: what is there stays as it is.
See docs/adding-a-resource.md.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
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


WORLD = "tests/support/declared_world.py"
EXAMPLE = '    __singular__ = (await coach.post(f"{client}/__path__", {"title": "An example"})).ok(201)\n'
# The lines that register a resource: the file, the line after which they are added, and the lines.
AFTER = (
    (WORLD, '    changed = await coach.post(f"{client}/notes", {"content": "To be undone"})\n', EXAMPLE),
    (WORLD, '        "noteId": note["_id"],\n', '        "__parameter__": __singular__["_id"],\n'),
    (
        "coaching_service/features.py",
        "from coaching_service.progress.metrics import routes as metrics\n",
        "from coaching_service.progress.__plural__ import routes as __plural__\n",
    ),
    ("coaching_service/features.py", "    notes.routes,\n", "    __plural__.routes,\n"),
    (
        "coaching_service/features.py",
        '    ("Notes", "Notes of coaches about a client."),\n',
        '    ("__Plural_words__", "__Plural_words__ of clients."),\n',
    ),
    ("pyproject.toml", "form_responses : notes", " : __plural__"),
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
    "tests/contract/scopes.txt": """
GET /coach/customers/{customerId}/__path__ | customers:read
POST /coach/customers/{customerId}/__path__ | customers:write
PATCH /coach/customers/{customerId}/__path__/{__parameter__} | customers:write
DELETE /coach/customers/{customerId}/__path__/{__parameter__} | customers:write
""",
    "tests/contract/indexes.txt": "__collection__: companyId customerId createdAt _id\n",
    "tests/contract/placements.txt": "__collection__: companyId\n",
    "tests/contract/locks.txt": """
customer POST /coach/customers/{customerId}/__path__
customer PATCH /coach/customers/{customerId}/__path__/{__parameter__}
customer DELETE /coach/customers/{customerId}/__path__/{__parameter__}
""",
    "tests/contract/events.txt": """
POST /coach/customers/{customerId}/__path__ | -
PATCH /coach/customers/{customerId}/__path__/{__parameter__} | -
DELETE /coach/customers/{customerId}/__path__/{__parameter__} | -
""",
}


def add_after(path: Path, anchor: str, addition: str) -> None:
    """Add text after the one place that has `anchor`, unless it is there. Raises SystemExit if no one place has it."""
    text = path.read_text("utf-8")
    if re.search(rf"(?<!\w){re.escape(addition.strip())}(?!\w)", text):
        return
    if text.count(anchor) != 1:
        raise SystemExit(f"{path.relative_to(ROOT)} has {anchor.strip()!r} {text.count(anchor)} times: adapt AFTER")
    path.write_text(text.replace(anchor, anchor + addition), "utf-8")


def append_lines(path: Path, lines: str) -> None:
    """Append the lines of a policy whose names it does not have; `|` is replaced by spaces up to its column."""
    text = path.read_text("utf-8").rstrip("\n") + "\n"
    known = {name[0] for line in text.splitlines() if (name := re.match(r"[A-Z]+ /\S+|\w+:|.+", line))}
    columns = [re.match(r"\S+ \S+ +", line) for line in text.splitlines() if re.match(r"(GET|POST) /", line)]
    width = max((len(column[0]) for column in columns if column), default=0)
    added = [each.partition(" | ") for each in lines.splitlines() if re.split(r" \| |(?<=:) ", each)[0] not in known]
    if any(name for name, _, _ in added):
        text += "".join(f"{name.ljust(width - 1)} {value}\n" if bar else f"{name}\n" for name, bar, value in added)
        path.write_text(text, "utf-8")


def run(*command: str) -> str:
    """Run a module of the environment and return its output. Raises SystemExit with its exit code if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(  # noqa: S603 - fixed modules, and files that this script writes
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.returncode)
    return done.stdout


def main(arguments: list[str]) -> int:
    """Write what is missing, and print what is left to do. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plural", metavar="NAME")
    parser.add_argument("--singular", help="for an irregular plural")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[a-z]+(_[a-z]+)*", options.plural):
        parser.error("NAME has small letters and underscores only")
    names = names_of(options.plural, options.singular or singular_of(options.plural))
    package = ROOT / "coaching_service" / "progress" / options.plural
    existing = [each for each in (package, package.with_suffix(".py")) if each.exists()]
    if existing and fill(EXAMPLE, names) not in (ROOT / WORLD).read_text("utf-8"):
        parser.error(f"{existing[0].relative_to(ROOT)} exists")
    for path, anchor, addition in AFTER:
        add_after(ROOT / path, anchor, fill(addition, names))
    for path, lines in POLICIES.items():
        append_lines(ROOT / path, fill(lines, names))
    test = ROOT / "tests" / "progress" / f"test_{options.plural}.py"
    package.mkdir(exist_ok=True)
    for file, template in [*((package / module, module) for module in MODULES), (test, "test.py")]:
        if not file.exists():
            file.write_text(fill((TEMPLATES / f"{template}.txt").read_text("utf-8"), names), "utf-8")
    (ROOT / "docs" / "errors.md").write_text(run("scripts.error_reference"), "utf-8")
    written = [str(path.relative_to(ROOT)) for path in (package, test, ROOT / "coaching_service" / "features.py")]
    for step in (["check", "--fix", "--quiet"], ["format", "--quiet"]):
        run("ruff", *step, *written, WORLD)
    print(f"Wrote {written[0]} and {written[1]}. Continue with docs/adding-a-resource.md.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
