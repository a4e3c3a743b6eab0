"""The muscle groups that exercises train; they are the same for every company."""

from __future__ import annotations

from coaching_service.core.ids import ObjectId, stable_id

MUSCLES = (
    "Chest",
    "Front Deltoids",
    "Side Deltoids",
    "Rear Deltoids",
    "Rotator Cuff",
    "Biceps",
    "Triceps",
    "Forearms",
    "Latissimus Dorsi",
    "Upper Back",
    "Trapezius",
    "Lower Back",
    "Abdominals",
    "Obliques",
    "Hip Flexors",
    "Glutes",
    "Quadriceps",
    "Hamstrings",
    "Adductors",
    "Abductors",
    "Calves",
    "Tibialis Anterior",
    "Neck",
)

NAME_OF: dict[ObjectId, str] = {stable_id("muscle", name): name for name in MUSCLES}
ID_OF: dict[str, ObjectId] = {name: identifier for identifier, name in NAME_OF.items()}
