"""The licenses of what is shipped, compared with a list that is written by hand: see scripts/licenses.txt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

RULES = Path(__file__).with_name("licenses.txt")
# Of the classifiers of PyPI, those that mean one identifier of SPDX.
_CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
_IDENTIFIER = r"[A-Za-z0-9.+-]+"
_ALTERNATIVES = rf"{_IDENTIFIER}(?: OR {_IDENTIFIER})+"
# `A`, `A OR B`, `A AND B AND (C OR D)`: in others, AND and OR would have to be weighed against each other.
_PART = rf"(?:{_IDENTIFIER}|\({_ALTERNATIVES}\))"
_EXPRESSION = re.compile(rf"{_ALTERNATIVES}|{_PART}(?: AND {_PART})*")


@dataclass(frozen=True)
class Rules:
    """The allowed identifiers; by package, the license to use instead of the stated one, and accepted exceptions."""

    allowed: frozenset[str]
    packages: dict[str, str]
    exceptions: dict[str, str]


def read_rules(text: str) -> Rules:
    """Return the rules in a text. Raises ValueError for a line of another form, or without its reason."""
    allowed: set[str] = set()
    named: dict[str, dict[str, str]] = {"package": {}, "except": {}}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        kind, _, rest = line.partition(" ")
        if kind == "allow" and re.fullmatch(_IDENTIFIER, rest):
            allowed.add(rest)
            continue
        name, _, rest = rest.partition(" ")
        expression = _EXPRESSION.match(rest)
        if kind not in named or expression is None or not rest[expression.end() :].strip():
            raise ValueError(f"{RULES.name}: not a rule with its reason: {line}")
        named[kind][name] = expression[0]
    return Rules(frozenset(allowed), named["package"], named["except"])


def find_license(package: str, rules: Rules) -> str | None:
    """Return the license of a Python package: as the rules name it, else as its metadata do; None if neither does."""
    for named in (rules.packages, rules.exceptions):
        if package in named:
            return named[package]
    try:
        stated = metadata.metadata(package)
    except metadata.PackageNotFoundError:
        return None
    if expression := stated.get("License-Expression"):
        return str(expression)
    if _EXPRESSION.fullmatch(stated.get("License") or ""):
        return str(stated["License"])
    classifiers = [each for each in stated.get_all("Classifier") or () if each.startswith("License ::")]
    return _CLASSIFIERS.get(classifiers[0]) if len(classifiers) == 1 else None


def is_allowed(package: str, expression: str | None, rules: Rules) -> bool:
    """Return whether a component with a license may be shipped."""
    if expression is None:
        return False
    if rules.exceptions.get(package) == expression:
        return True
    if not _EXPRESSION.fullmatch(expression):
        return False
    if "(" not in expression and " OR " in expression:
        return _is_any_allowed(expression, rules)
    return all(_is_any_allowed(part.strip("()"), rules) for part in expression.split(" AND "))


def _is_any_allowed(alternatives: str, rules: Rules) -> bool:
    return not rules.allowed.isdisjoint(alternatives.split(" OR "))


def find_refused(licenses: Iterable[tuple[str, str | None]], rules: Rules) -> list[str]:
    """Return the components, with their licenses, that may not be shipped."""
    return [
        f"{package}: {expression or 'no license that can be read'}"
        for package, expression in licenses
        if not is_allowed(package, expression, rules)
    ]
