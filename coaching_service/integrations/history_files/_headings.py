"""Headings of columns, in any case and order, in the languages that files come in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.tables import Cell

Field = Literal[
    "customer",
    "customerId",
    "date",
    "time",
    "end",
    "duration",
    "workout",
    "workoutNotes",
    "exercise",
    "set",
    "setKind",
    "sets",
    "reps",
    "load",
    "loadUnit",
    "distance",
    "distanceUnit",
    "seconds",
    "rpe",
    "rir",
    "notes",
    "superset",
    "isCompleted",
    "leftOut",
]
Name = TypeVar("Name", bound=str)
Unit = Literal["kg", "lb", "km", "mi", "m", "yd", "min"]

# Each name is normalized: lower case, without accents and signs. Units and what is in brackets are read separately.
VOCABULARY: Mapping[Field, tuple[str, ...]] = {
    "customer": ("client", "client name", "customer", "athlete", "athlete name", "cliente", "kunde", "name of client"),
    "date": (
        "date",
        "day",
        "workout date",
        "start time",
        "fecha",
        "dia",
        "datum",
        "data",
        "hora de inicio",
        "inicio",
        "startzeit",
        "beginn",
        "heure de debut",
        "debut",
        "ora di inizio",
        "inizio",
    ),
    "time": ("time of day", "start", "hora", "uhrzeit", "heure", "ora"),
    "end": (
        "end time",
        "end",
        "hora de fin",
        "hora de finalizacion",
        "fin",
        "endzeit",
        "ende",
        "heure de fin",
        "ora di fine",
        "fine",
        "hora de termino",
        "fim",
    ),
    "duration": ("workout duration", "duration", "duracion", "dauer", "duree", "durata", "duracao"),
    "workout": (
        "workout",
        "workout name",
        "workout title",
        "title",
        "session",
        "routine",
        "entrenamiento",
        "nombre del entrenamiento",
        "rutina",
        "titulo",
        "titel",
        "titre",
        "titolo",
        "trainingsname",
        "name des workouts",
        "nom de l entrainement",
        "nom de la seance",
        "nome allenamento",
        "nome dell allenamento",
        "nome do treino",
    ),
    "workoutNotes": (
        "workout notes",
        "description",
        "notas del entrenamiento",
        "descripcion",
        "workout notizen",
        "trainingsnotizen",
        "beschreibung",
        "notes de l entrainement",
        "note allenamento",
        "note dell allenamento",
        "descrizione",
        "notas do treino",
        "descricao",
    ),
    "exercise": (
        "exercise",
        "exercise name",
        "exercise title",
        "movement",
        "lift",
        "ejercicio",
        "nombre del ejercicio",
        "ubung",
        "name der ubung",
        "ubungsname",
        "exercice",
        "nom de l exercice",
        "esercizio",
        "nome esercizio",
        "nome dell esercizio",
        "exercicio",
        "nome do exercicio",
        "titulo del ejercicio",
        "titel der ubung",
        "ubungstitel",
        "titre de l exercice",
        "titolo dell esercizio",
        "titolo esercizio",
        "titulo do exercicio",
    ),
    "set": (
        "set",
        "set order",
        "set index",
        "set number",
        "serie",
        "orden de la serie",
        "orden de serie",
        "satz",
        "satz reihenfolge",
        "ordre de la serie",
        "ordre des series",
        "ordine serie",
        "ordine della serie",
        "ordem da serie",
        "ordem das series",
        "indice de la serie",
        "indice de serie",
        "satzindex",
        "satz index",
        "index de la serie",
        "indice della serie",
        "indice serie",
        "indice da serie",
    ),
    "setKind": (
        "set type",
        "type of set",
        "kind",
        "tipo de serie",
        "satztyp",
        "type de serie",
        "tipo serie",
        "satz typ",
        "tipo di serie",
    ),
    "sets": ("sets", "series", "satze"),
    "reps": (
        "reps",
        "rep",
        "repetitions",
        "repeticiones",
        "wiederholungen",
        "wdh",
        "repetitions par serie",
        "ripetizioni",
        "repeticoes",
    ),
    "load": ("weight", "load", "peso", "carga", "gewicht", "poids", "charge", "carico"),
    "loadUnit": ("weight unit", "load unit", "unidad de peso", "gewichtseinheit", "unite de poids", "unita di peso"),
    "distance": ("distance", "distancia", "distanz", "entfernung", "distanza"),
    "distanceUnit": ("distance unit", "unidad de distancia", "distanzeinheit", "unite de distance"),
    "seconds": (
        "seconds",
        "duration seconds",
        "time",
        "set duration",
        "segundos",
        "tiempo",
        "sekunden",
        "zeit",
        "secondes",
        "temps",
        "secondi",
        "tempo",
        "duracion segundos",
        "dauer sekunden",
        "duree secondes",
        "durata secondi",
        "duracao segundos",
    ),
    "rpe": ("rpe", "effort", "esfuerzo"),
    "rir": ("rir", "reps in reserve"),
    "notes": (
        "notes",
        "note",
        "comment",
        "comments",
        "exercise notes",
        "notas",
        "notizen",
        "comentario",
        "kommentar",
        "notas del ejercicio",
        "ubungsnotizen",
        "notizen zur ubung",
        "notes de l exercice",
        "note dell esercizio",
        "notas do exercicio",
    ),
    "superset": (
        "superset",
        "superset id",
        "superserie",
        "supersatz",
        "id de superserie",
        "id de la superserie",
        "supersatz id",
        "id superserie",
        "superserie id",
        "id da superserie",
    ),
    "isCompleted": ("is completed", "completed"),
}
_UNIT_WORDS: Mapping[str, Unit] = {
    "kg": "kg",
    "kgs": "kg",
    "kilos": "kg",
    "kilogram": "kg",
    "kilograms": "kg",
    "lb": "lb",
    "lbs": "lb",
    "pound": "lb",
    "pounds": "lb",
    "km": "km",
    "kms": "km",
    "kilometers": "km",
    "kilometres": "km",
    "mi": "mi",
    "mile": "mi",
    "miles": "mi",
    "m": "m",
    "meter": "m",
    "meters": "m",
    "metre": "m",
    "metres": "m",
    "yd": "yd",
    "yds": "yd",
    "yard": "yd",
    "yards": "yd",
    "min": "min",
    "mins": "min",
    "minutes": "min",
}
_TIME_WORDS = {"sec", "s", "seconds", "mm ss", "h mm", "hh mm ss"}
_SIGNS = re.compile(r"[^a-z0-9%]+")
_IN_BRACKETS = re.compile(r"^(.*)\((.*)\)\s*$")


@dataclass(frozen=True)
class Heading:
    """A heading as it is compared: its words, and the unit behind them if there is one."""

    words: str
    unit: Unit | None


@lru_cache(maxsize=4096)
def read_heading(text: str) -> Heading:
    """Return the words and the unit of a heading: `Weight (lbs)` and `weight_lbs` are `weight` in lb."""
    found = _IN_BRACKETS.match(normalize(text))
    if found is not None:
        inside = _words(found[2])
        if inside in _UNIT_WORDS or inside in _TIME_WORDS:
            return Heading(_words(found[1]), _UNIT_WORDS.get(inside))
    words = _words(text)
    first, _, last = words.rpartition(" ")
    return Heading(first, _UNIT_WORDS[last]) if first and last in _UNIT_WORDS else Heading(words, None)


@lru_cache(maxsize=1024)
def unit_of(text: str) -> Unit | None:
    """Return the unit that a word is; None if it is none."""
    return _UNIT_WORDS.get(_words(text))


def words_of(headings: Sequence[Cell]) -> set[str]:
    """Return the words of headings."""
    return {read_heading(heading).words for heading in headings if isinstance(heading, str)}


def _words(text: str) -> str:
    return _SIGNS.sub(" ", normalize(text)).strip()


def by_words(vocabulary: Mapping[Name, Sequence[str]]) -> dict[str, Name]:
    """Return what each heading of a vocabulary means, by its words."""
    return {words: name for name, headings in vocabulary.items() for words in headings}


FIELD_OF: Mapping[str, Field] = by_words(VOCABULARY)
