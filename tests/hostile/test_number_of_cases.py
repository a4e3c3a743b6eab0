"""The number of hostile cases: a generator that lost a part of the declarations is noticed."""

from __future__ import annotations

from tests.hostile.cases import numbers


def test_there_are_five_thousand_cases() -> None:
    found = numbers()
    print(
        *(f"{number:6,} {subject}" for subject, number in found.items()), f"{sum(found.values()):6,} in total", sep="\n"
    )
    assert sum(found.values()) >= 5_000
    assert {subject for subject, number in found.items() if number < 40} == set()
