"""Write the bill of materials, and check licenses and known vulnerabilities of what is shipped: see scripts/audit."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

from scripts.licenses import RULES, find_license, find_refused, read_rules

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "scripts" / "requirements-telemetry.lock"  # all that a container can have
BROWSER_LIBRARIES = ROOT / "coaching_service" / "web" / "static" / "vendor" / "manifest.json"
ACCEPTED = ROOT / "scripts" / "audit-accepted.txt"

DEADLINE_SECONDS = 180
VALID = timedelta(days=30)  # how long a check of a version counts while the database does not respond


class Vulnerability(TypedDict):
    """One known vulnerability of a locked package. `identifiers`: its names in all databases."""

    package: str
    identifiers: list[str]
    fixed_in: list[str]


class Audit(TypedDict):
    """The result, which is also the cache for the next audit.

    `checked`: by package and version, the day on which the database was asked. `not_checked`: the others, and `reason`
    why the database was not asked; None if it was asked for all.
    """

    checked: dict[str, str]
    not_checked: list[str]
    reason: str | None
    vulnerabilities: list[Vulnerability]


def write_bill_of_materials(target: Path) -> list[tuple[str, str | None]]:
    """Write the bill of materials in CycloneDX's JSON; return its components with their licenses."""
    command = ["-m", "cyclonedx_py", "requirements", str(LOCK), "--pyproject", str(ROOT / "pyproject.toml")]
    result = run([*command, "--output-reproducible"])
    result.check_returncode()
    document: dict[str, Any] = json.loads(result.stdout)
    rules, licenses = read_rules(RULES.read_text("utf-8")), list[tuple[str, str | None]]()
    for component in document["components"]:
        component.pop("description", None)  # the line of the lock
        licenses.append((component["name"], find_license(component["name"], rules)))
    for library in json.loads(BROWSER_LIBRARIES.read_text("utf-8")):
        name, version = library["name"], library["version"]
        purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        component = {"bom-ref": purl, "name": name, "purl": purl, "type": "library", "version": version}
        document["components"].append(component)
        licenses.append((name, library["license"]))
    for component, (_, expression) in zip(document["components"], licenses, strict=True):
        component["licenses"] = [{"expression": expression}] if expression else []
    target.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return licenses


def read_lock(lock: Path = LOCK) -> dict[str, str]:
    """Return the names of the packages of a lock with their versions."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text("utf-8"), re.MULTILINE))


def look_up(lock: Path = LOCK) -> Audit:
    """Look the packages of a lock up in PyPI's database of vulnerabilities."""
    locked, day = read_lock(lock), datetime.now(UTC).date()
    command = ["-m", "pip_audit", "--require-hashes", "--disable-pip", "--no-deps", "--progress-spinner", "off"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        try:
            result = run([*command, "--format", "json", "--output", str(report), "--requirement", str(lock)])
        except subprocess.TimeoutExpired:
            return read_report({}, locked, day, f"The database did not respond within {DEADLINE_SECONDS} seconds")
        if not report.exists():  # it ends with 1 for vulnerabilities too
            lines = result.stderr.strip().splitlines()
            return read_report({}, locked, day, lines[-1] if lines else "no report")
        return read_report(json.loads(report.read_text("utf-8")), locked, day)


def read_report(report: dict[str, Any], locked: Mapping[str, str], day: date, reason: str | None = None) -> Audit:
    """Return the result in a report of pip-audit. A package of the lock that is not in it has not been checked."""
    entries = report.get("dependencies", [])
    audited = [each for each in entries if "skip_reason" not in each]
    checked = {f"{each['name']} {each['version']}": day.isoformat() for each in audited}
    not_checked = [each for each in _names(locked) if each not in checked]
    vulnerabilities: list[Vulnerability] = [
        {
            "package": f"{package['name']} {package['version']}",
            "identifiers": [entry["id"], *entry["aliases"]],
            "fixed_in": entry["fix_versions"],
        }
        for package in audited
        for entry in package["vulns"]
    ]
    skipped = [each["skip_reason"] for each in entries if "skip_reason" in each]
    if not_checked and reason is None:
        reason = skipped[0] if skipped else "not in the report"
    return {"checked": checked, "not_checked": not_checked, "reason": reason, "vulnerabilities": vulnerabilities}


def add_cached(current: Audit, cached: Audit, day: date) -> Audit:
    """Return a result with what an earlier one, not more than 30 days ago, says about versions not checked now."""
    known = {
        each: cached["checked"][each]
        for each in current["not_checked"]
        if each in cached["checked"] and day - date.fromisoformat(cached["checked"][each]) <= VALID
    }
    return {
        "checked": current["checked"] | known,
        "not_checked": [each for each in current["not_checked"] if each not in known],
        "reason": current["reason"],
        "vulnerabilities": [
            *current["vulnerabilities"],
            *(each for each in cached["vulnerabilities"] if each["package"] in known),
        ],
    }


def _names(locked: Mapping[str, str]) -> list[str]:
    return [f"{name} {version}" for name, version in locked.items()]


def read_cache(path: Path) -> Audit:
    """Return the result of the last audit; an empty one if there is none of this version of the script."""
    empty: Audit = {"checked": {}, "not_checked": [], "reason": None, "vulnerabilities": []}
    cached: Any = json.loads(path.read_text("utf-8")) if path.exists() else empty
    return cached if "checked" in cached else empty  # type: ignore[no-any-return]  # written by this script


def read_accepted(text: str) -> set[str]:
    """Return the accepted identifiers. Raises ValueError if a line has no reason."""
    accepted = set()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        identifier, _, reason = line.partition(" ")
        if not reason.strip():
            raise ValueError(f"{ACCEPTED.name}: {identifier} needs a reason on the same line")
        accepted.add(identifier)
    return accepted


def run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a module of this Python. Raises TimeoutExpired."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)  # noqa: S603 - fixed programs


def summarize(audit: Audit, open_ones: Sequence[Vulnerability], day: date) -> list[str]:
    """Return the lines of the report. What has not been checked is never left out."""
    lines = [
        f"{each['package']}: {', '.join(each['identifiers'])}; fixed in {', '.join(each['fixed_in']) or 'no version'}"
        for each in open_ones
    ]
    lines.append(f"dist/audit.json: {len(audit['checked'])} versions checked, {len(open_ones)} vulnerabilities")
    if audit["reason"] is not None:
        lines.append(f"The database did not answer for all of them: {audit['reason']}")
    if earlier := [each for each in audit["checked"].values() if each != day.isoformat()]:
        lines.append(f"{len(earlier)} of them were checked earlier, the first on {min(earlier)}")
    if audit["not_checked"]:
        lines.append(f"NOT CHECKED for vulnerabilities: {len(audit['not_checked'])} versions")
    return lines


def exit_code(audit: Audit, problems: int, *, required: bool, allow_unchecked: bool) -> int:
    """Return 1 for problems; 2 for versions that were not checked, or with `required` not now; else 0."""
    if problems:
        return 1
    is_missing = audit["reason"] is not None if required else bool(audit["not_checked"])
    return 2 if is_missing and not allow_unchecked else 0


def main() -> int:
    """Write the files to dist/ and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--required", action="store_true", help="end with 2 if the database does not respond now")
    choice.add_argument("--allow-unchecked", action="store_true", help="end with 0 although versions were not checked")
    options = parser.parse_args()
    folder, day = ROOT / "dist", datetime.now(UTC).date()
    folder.mkdir(exist_ok=True)
    licenses = write_bill_of_materials(folder / "sbom.cdx.json")
    refused = find_refused(licenses, read_rules(RULES.read_text("utf-8")))
    text = "".join(f"{name}: {expression or 'unknown'}\n" for name, expression in sorted(licenses))
    (folder / "licenses.txt").write_text(text, "utf-8")
    print(f"dist/sbom.cdx.json: {len(licenses)} components; dist/licenses.txt: {len(refused)} licenses are not allowed")
    print(*refused, sep="\n", end="\n" if refused else "")
    audit = add_cached(look_up(), read_cache(folder / "audit.json"), day)
    (folder / "audit.json").write_text(json.dumps(audit, indent=2) + "\n", "utf-8")
    accepted = read_accepted(ACCEPTED.read_text("utf-8"))
    open_ones = [each for each in audit["vulnerabilities"] if accepted.isdisjoint(each["identifiers"])]
    print(*summarize(audit, open_ones, day), sep="\n")
    problems = len(open_ones) + len(refused)
    return exit_code(audit, problems, required=options.required, allow_unchecked=options.allow_unchecked)


if __name__ == "__main__":
    sys.exit(main())
