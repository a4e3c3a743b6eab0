"""Write the bill of materials, and look the locked packages up in a database of vulnerabilities: see scripts/audit."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "scripts" / "requirements-telemetry.lock"  # all that a container can have
BROWSER_LIBRARIES = ROOT / "scripts" / "vendor.json"
ACCEPTED = ROOT / "scripts" / "audit-accepted.txt"

DEADLINE_SECONDS = 180


class Vulnerability(TypedDict):
    """One known vulnerability of a locked package. `identifiers`: its names in all databases."""

    package: str
    identifiers: list[str]
    fixed_in: list[str]


class Audit(TypedDict):
    """The result. `not_audited`: packages that could not be looked up, and `reason` why; None if there are none."""

    audited: int
    not_audited: list[str]
    reason: str | None
    vulnerabilities: list[Vulnerability]


def write_bill_of_materials(target: Path) -> int:
    """Write the bill of materials in CycloneDX's JSON; return the number of its components."""
    command = ["-m", "cyclonedx_py", "requirements", str(LOCK), "--pyproject", str(ROOT / "pyproject.toml")]
    result = run([*command, "--output-reproducible"])
    result.check_returncode()
    document: dict[str, Any] = json.loads(result.stdout)
    for component in document["components"]:
        component.pop("description", None)  # the line of the lock
    libraries: dict[str, dict[str, str]] = json.loads(BROWSER_LIBRARIES.read_text("utf-8"))
    for name, library in libraries.items():
        purl = f"pkg:npm/{name.replace('@', '%40')}@{library['version']}"
        component = {"bom-ref": purl, "name": name, "purl": purl, "type": "library", "version": library["version"]}
        document["components"].append(component)
    target.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    return len(document["components"])


def look_up(lock: Path = LOCK) -> Audit:
    """Look the packages of a lock up in PyPI's database of vulnerabilities."""
    command = ["-m", "pip_audit", "--require-hashes", "--disable-pip", "--no-deps", "--progress-spinner", "off"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        try:
            result = run([*command, "--format", "json", "--output", str(report), "--requirement", str(lock)])
        except subprocess.TimeoutExpired:
            reason = f"The database did not respond within {DEADLINE_SECONDS} seconds"
            return {"audited": 0, "not_audited": [], "reason": reason, "vulnerabilities": []}
        if not report.exists():  # it ends with 1 for vulnerabilities too
            lines = result.stderr.strip().splitlines()
            return {
                "audited": 0,
                "not_audited": [],
                "reason": lines[-1] if lines else "no report",
                "vulnerabilities": [],
            }
        return read_report(json.loads(report.read_text("utf-8")))


def read_report(report: dict[str, Any]) -> Audit:
    """Return the result in a report of pip-audit. A package is audited if the database knows it."""
    not_audited = [each for each in report["dependencies"] if "skip_reason" in each]
    audited = [each for each in report["dependencies"] if "skip_reason" not in each]
    vulnerabilities: list[Vulnerability] = [
        {
            "package": f"{package['name']} {package['version']}",
            "identifiers": [entry["id"], *entry["aliases"]],
            "fixed_in": entry["fix_versions"],
        }
        for package in audited
        for entry in package["vulns"]
    ]
    return {
        "audited": len(audited),
        "not_audited": [each["name"] for each in not_audited],
        "reason": not_audited[0]["skip_reason"] if not_audited else None,
        "vulnerabilities": vulnerabilities,
    }


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


def main() -> int:
    """Write both files to dist/ and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--required", action="store_true", help="fail if the database cannot be reached")
    required = parser.parse_args().required
    folder = ROOT / "dist"
    folder.mkdir(exist_ok=True)
    print(f"dist/sbom.cdx.json: {write_bill_of_materials(folder / 'sbom.cdx.json')} components")
    audit = look_up()
    (folder / "audit.json").write_text(json.dumps(audit, indent=2) + "\n", "utf-8")
    accepted = read_accepted(ACCEPTED.read_text("utf-8"))
    open_ones = [each for each in audit["vulnerabilities"] if accepted.isdisjoint(each["identifiers"])]
    for each in open_ones:
        fixed_in = ", ".join(each["fixed_in"]) or "no version"
        print(f"{each['package']}: {', '.join(each['identifiers'])}; fixed in {fixed_in}")
    print(f"dist/audit.json: {audit['audited']} packages audited, {len(open_ones)} vulnerabilities")
    if audit["reason"] is not None:
        print(f"Not audited: {len(audit['not_audited']) or 'all'} packages. {audit['reason']}")
    if open_ones:
        return 1
    return 2 if required and audit["reason"] is not None else 0


if __name__ == "__main__":
    sys.exit(main())
