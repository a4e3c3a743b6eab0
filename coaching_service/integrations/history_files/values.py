"""Values in cells as people and other services write them, and headings in the languages that files come in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Literal, TypeVar

from babel.dates import get_month_names

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files.tables import Cell, CommaNumber, text_of

DateOrder = Literal["dmy", "mdy", "ymd"]
DecimalSign = Literal[".", ","]
LANGUAGES = ("en", "es", "de", "fr", "it", "pt")
_NUMBER = re.compile(r"[-+\u2212]?(?:\d[\d.,'\u00a0\u202f]*|[.,]\d+)")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:(?:,\d{3})+|(?:\.\d{3}){2,})")
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
# A number with thousands, by the sign of its decimals.
_WITH_THOUSANDS = {
    ".": re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"),
    ",": re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?"),
}
_TIME = r"(?P<hour>\d{1,2})[:.h](?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?\s*(?P<half>[ap]\.?\s?m\.?)?"
_TIME_ALONE = re.compile(_TIME, re.IGNORECASE)
_BEFORE_TIME = r"(?:,?\s+(?:at|um|a las|à|alle|às)?\s*|T)"
_AFTER_TIME = r"(?:\s*(?P<offset>Z|UTC|[+-]\d{2}:?\d{2}))?"
_WITH_TIME = rf"(?:{_BEFORE_TIME}{_TIME})?{_AFTER_TIME}"
_DATE_WITHOUT_SIGNS = re.compile(
    rf"(?P<year>(?:19|20)\d\d)(?P<month>0[1-9]|1[0-2])(?P<day>\d\d){_WITH_TIME}", re.IGNORECASE
)
_NUMERIC_DATE = re.compile(
    rf"(?P<a>\d{{1,4}})(?P<sign>[-./])(?P<b>\d{{1,2}})(?P=sign)(?P<c>\d{{1,4}}){_WITH_TIME}", re.IGNORECASE
)
_WEEKDAY = r"(?:[^\W\d]+\.?(?:,\s*|\s+))?"
_YEAR = r"(?P<year>\d{4}|\d{2})"
_DAY_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?\s*(?:[-/]|de\s+|of\s+)?(?P<month>[^\W\d]+)\.?,?\s*(?:[-/]|de\s+)?"
    rf"{_YEAR}{_WITH_TIME}",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}(?P<month>[^\W\d]+)\.?(?:\s+|[-/])(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?(?:\s+|[-/])"
    rf"{_YEAR}{_WITH_TIME}",
    re.IGNORECASE,
)
_YEAR_FIRST = re.compile(
    rf"(?P<year>\d{{4}})[-/.\s](?P<month>[^\W\d]+)\.?[-/.\s](?P<day>\d{{1,2}}){_WITH_TIME}", re.IGNORECASE
)
_CLOCK = re.compile(r"(?:(?P<hours>\d+):)?(?P<minutes>\d{1,3}):(?P<seconds>\d{2}(?:[.,]\d+)?)")
_UNITS = re.compile(
    r"(?:(?P<hours>\d+(?:[.,]\d+)?)\s*(?:h|hr|hrs|hour|hours|std))?\s*"
    r"(?:(?P<minutes>\d+(?:[.,]\d+)?)\s*(?:m|min|mins|minute|minutes|minutos|minuten|'))?\s*"
    r"(?:(?P<seconds>\d+(?:[.,]\d+)?)\s*(?:s|sec|secs|second|seconds|seg|segs|segundos|sek|sekunden|\"))?",
    re.IGNORECASE,
)
_DAY_AND_MONTH = re.compile(r"\d{1,2}[-/](?P<after>[^\W\d]+)\.?|(?P<before>[^\W\d]+)\.?[-/]\d{1,2}")
_SERIAL_DATES = (10_000, 80_000)  # 1927 to 2119, in days of Excel
_UNIX_TIME = re.compile(r"1[0-9]{9}")  # 2001 to 2033
_SERIAL_DATE = re.compile(r"\d{5}(?:[.,]\d+)?")
_LAST_SHORT_YEAR = 29  # as spreadsheets read them: 29 is 2029, and 30 is 1930
MADE_DATE = "is a date, as a spreadsheet has made it of numbers"


class InvalidValue(ValueError):
    """A cell does not have a value of the kind; the message says what is expected."""


class UnknownOrder(InvalidValue):
    """A date such as 03/04/2026, whose day and month only the order of the file tells apart."""

    def __init__(self) -> None:
        super().__init__("may be day and month or month and day")


@dataclass(frozen=True)
class DateAndTime:
    """A date, and the time of day (`HH:MM`) if the cell has one; with its offset, `instant` is the same in UTC."""

    day: date
    clock: str | None
    instant: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Quantity:
    """A number and the unit written behind it, in lower case; empty without one."""

    amount: float
    unit: str


def read_quantity(cell: Cell, sign: DecimalSign | None = None) -> Quantity | None:
    """Return the number of a cell: `62,5`, `1,250.5`, `135 lbs`. None if it is empty.

    `sign` is before the decimals in all of the file; None: the cell alone decides.
    """
    if isinstance(cell, bool):
        raise InvalidValue("must be a number")
    if isinstance(cell, int | float):
        return Quantity(float(cell), "")
    if cell is None or not (text := str(cell).strip()):
        return None
    found = _NUMBER.match(text.replace(",", ".") if isinstance(cell, CommaNumber) and sign is None else text)
    if found is None:
        raise InvalidValue("must be a number")
    unit = normalize(text[found.end() :]).strip(". ")
    if any(character.isdigit() for character in unit):
        raise InvalidValue("must be one number")
    return Quantity(_amount(found.group(), sign), unit)


def read_number(cell: Cell, sign: DecimalSign | None = None) -> float | None:
    """Return the number of a cell, whatever its unit."""
    quantity = read_quantity(cell, sign)
    return None if quantity is None else quantity.amount


def is_plain_number(cell: Cell) -> bool:
    """Return whether a cell is a number without a unit."""
    if isinstance(cell, str):
        return _NUMBER.fullmatch(cell.strip()) is not None
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def decimal_signs(text: str) -> set[DecimalSign]:
    """Return which signs may be before the decimals of a number: both of `1.500`, none of `60` and of `5,5,4`."""
    found = _NUMBER.match(text.strip())
    plain = "" if found is None else re.sub("['\u00a0\u202f\u2212+-]", "", found.group()).rstrip(".,")
    both: tuple[DecimalSign, DecimalSign] = (".", ",")
    signs = [sign for sign in both if sign in plain]
    if len(signs) == 2:
        last: DecimalSign = "." if plain.rindex(".") > plain.rindex(",") else ","
        return {last} if plain.count(last) == 1 else set()
    if not signs:
        return set()
    other: DecimalSign = "," if signs == ["."] else "."
    is_grouped = _GROUPS.fullmatch(plain) is not None
    if plain.count(signs[0]) > 1:
        return {other} if is_grouped else set()
    return {".", ","} if is_grouped else {signs[0]}


def decided_sign(counts: Mapping[str, int]) -> DecimalSign | None:
    """Return the sign before decimals in a file, of how many numbers have which; None if they do not decide it.

    Where both occur, points are decimals: a comma may also be between numbers.
    """
    points, commas = counts.get(".", 0), counts.get(",", 0)
    if points >= commas:
        return "." if points else None
    return None if points else ","


def _amount(text: str, sign: DecimalSign | None = None) -> float:
    plain = re.sub("['\u00a0\u202f]", "", text).replace("\u2212", "-")
    if sign is not None:
        other = "," if sign == "." else "."
        if other in plain:
            if _WITH_THOUSANDS[sign].fullmatch(plain) is None:
                raise InvalidValue(f"is no number with the decimal sign of the file, which is {sign}")
            plain = plain.replace(other, "")
        plain = plain.replace(",", ".")
    elif "," in plain and "." in plain:
        thousands, decimal = (",", ".") if plain.rindex(".") > plain.rindex(",") else (".", ",")
        plain = plain.replace(thousands, "").replace(decimal, ".")
    elif _THOUSANDS.fullmatch(plain):
        plain = re.sub("[.,]", "", plain)
    else:
        plain = plain.replace(",", ".")
    try:
        return float(plain.rstrip("."))
    except ValueError:
        raise InvalidValue("must be a number") from None


def read_seconds(cell: Cell, sign: DecimalSign | None = None) -> float | None:
    """Return a duration in seconds: `0:01:30`, `1:30` (minutes), `1h 5m`, `45 s`, or a number of seconds."""
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    if isinstance(cell, datetime | time):
        return cell.hour * 3600.0 + cell.minute * 60 + cell.second
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell)
    if cell is None or not (text := str(cell).strip()):
        return None
    found = _CLOCK.fullmatch(text) or _UNITS.fullmatch(text)
    if found is not None and any(found.groupdict().values()):
        parts = {name: _amount(part) if part else 0.0 for name, part in found.groupdict().items()}
        return parts["hours"] * 3600 + parts["minutes"] * 60 + parts["seconds"]
    quantity = read_quantity(cell, sign)
    if quantity is None or quantity.unit:
        raise InvalidValue("must be a duration such as 1:30 or 90 s")
    return quantity.amount


def read_clock(cell: Cell) -> str | None:
    """Return a time of day as `HH:MM`: `17:29`, `5:29 PM`."""
    if isinstance(cell, datetime | time):
        return f"{cell:%H:%M}"
    if cell is None or not (text := str(cell).strip()):
        return None
    if (found := _TIME_ALONE.fullmatch(text)) is None:
        raise InvalidValue("must be a time such as 17:29")
    return _clock_of(found)


@lru_cache(maxsize=1024)  # the rows of a session follow each other
def read_date_and_time(cell: Cell, order: DateOrder | None) -> DateAndTime | None:
    """Return the date, and the time if there is one. None if the cell is empty.

    `order` decides what `03/04/2026` means. Raises UnknownOrder where it is needed and None, InvalidValue for no date.
    """
    if isinstance(cell, datetime):
        return DateAndTime(cell.date(), f"{cell:%H:%M}" if cell.time() != time() else None)
    if isinstance(cell, date):
        return DateAndTime(cell, None)
    if isinstance(cell, int | float) and _SERIAL_DATES[0] <= cell < _SERIAL_DATES[1]:
        from openpyxl.utils.datetime import from_excel  # large, and needed for few files only

        return read_date_and_time(from_excel(cell), order)
    if cell is None or not (text := text_of(cell)):
        return None
    if _SERIAL_DATE.fullmatch(text) and _SERIAL_DATES[0] <= (days := _amount(text)) < _SERIAL_DATES[1]:
        return read_date_and_time(days, order)
    if _UNIX_TIME.fullmatch(text):
        instant = datetime.fromtimestamp(int(text), UTC)
        return DateAndTime(instant.date(), f"{instant:%H:%M}", instant)
    if found := _DATE_WITHOUT_SIGNS.fullmatch(text):
        return _date_and_time(found, _date(int(found["year"]), int(found["month"]), int(found["day"])))
    if found := _NUMERIC_DATE.fullmatch(text):
        return _date_and_time(found, _numeric_date(found, order))
    for pattern in (_DAY_FIRST, _MONTH_FIRST, _YEAR_FIRST):
        found = pattern.fullmatch(text)
        if found is not None and (month := _months().get(normalize(found["month"]).strip("."))) is not None:
            return _date_and_time(found, _date(_year(found["year"]), month, int(found["day"])))
    raise InvalidValue("must be a date such as 2026-03-02")


def _date_and_time(found: re.Match[str], day: date) -> DateAndTime:
    clock, offset = _clock_of(found), found["offset"]
    if clock is None or offset is None:
        return DateAndTime(day, clock)
    local, minutes = datetime.combine(day, time.fromisoformat(clock), UTC), 0
    if offset[0] in "+-":
        minutes = int(offset[0] + offset[1:3]) * 60 + int(offset[0] + offset[-2:])
    return DateAndTime(day, clock, local - timedelta(minutes=minutes))


def is_made_date(text: str) -> bool:
    """Return whether a text is a date that a spreadsheet may have made of numbers: `10/12/2026`, `12-Oct`."""
    if found := _NUMERIC_DATE.fullmatch(text.strip()):
        return max(len(found["a"]), len(found["c"])) == len("2026")
    short = _DAY_AND_MONTH.fullmatch(text.strip())
    return short is not None and normalize(short["before"] or short["after"]) in _months()


def depends_on_order(text: str, order: DateOrder | None) -> bool:
    """Return whether a text is a date of numbers such as 03/04/2026, whose order `order` does not decide.

    Those with points and those with the year first have an order of their own.
    """
    found = _NUMERIC_DATE.fullmatch(text.strip())
    if found is None or found["sign"] == "." or len(found["a"]) > 2:
        return False
    return order is None or (order == "ymd" and len(found["c"]) > 2)


def possible_orders(text: str) -> set[DateOrder]:
    """Return the orders in which a date of numbers is a day of the calendar; with day and month alike, all do."""
    orders: set[DateOrder] = set()
    for order in ("dmy", "mdy"):
        with suppress(InvalidValue):
            read_date_and_time(text, order)
            orders.add(order)
    return orders


def _numeric_date(found: re.Match[str], order: DateOrder | None) -> date:
    a, b, c, sign = found["a"], found["b"], found["c"], found["sign"]
    if len(a) > 2 or (order == "ymd" and len(c) <= 2):
        return _date(_year(a), int(b), int(c))
    is_month_first = order == "mdy" and sign != "."
    if sign != "." and order not in ("dmy", "mdy") and a != b and int(a) <= 12:
        if int(b) <= 12:
            raise UnknownOrder
        is_month_first = True
    return _date(_year(c), int(a), int(b)) if is_month_first else _date(_year(c), int(b), int(a))


def _year(text: str) -> int:
    year = int(text)
    return year if len(text) > 2 else year + (2000 if year <= _LAST_SHORT_YEAR else 1900)


def _date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError:
        raise InvalidValue("is not a day of the calendar") from None


def _clock_of(found: re.Match[str]) -> str | None:
    if found["hour"] is None:
        return None
    hour, minute = int(found["hour"]), int(found["minute"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"][0] in "pP" else 0)
    if hour > 23 or minute > 59:
        raise InvalidValue("is not a time of day")
    return f"{hour:02}:{minute:02}"


@cache
def _months() -> dict[str, int]:
    months: dict[str, int] = {"sept": 9}
    for language in LANGUAGES:
        for width in ("wide", "abbreviated"):
            for context in ("format", "stand-alone"):
                names = get_month_names(width, context, language)
                months |= {normalize(name).strip("."): number for number, name in names.items()}
    return months


# --- The words of the headings of each field, and of kinds of sets ----------------------------------------------------


Name = TypeVar("Name", bound=str)
Field = (
    Literal["customer", "customerId", "customerEmail", "firstName", "lastName"]
    | Literal["date", "time", "end", "duration", "workout", "workoutNotes"]
    | Literal["exercise", "set", "setKind", "sets", "reps", "load", "loadUnit", "distance", "distanceUnit", "seconds"]
    | Literal["rpe", "rir", "notes", "superset", "isCompleted", "isWarmup", "leftOut"]
)
SetKind = Literal["normal", "warmup", "drop", "failure"]


def _listed(text: str) -> tuple[str, ...]:
    """Return the words in a text: commas are between them, and the lines divide them by languages."""
    return tuple(words for line in text.split("\n") for each in line.split(",") if (words := each.strip()))


def by_words(vocabulary: Mapping[Name, Sequence[str]]) -> dict[str, Name]:
    """Return what each heading of a vocabulary means, by its words."""
    return {words: name for name, headings in vocabulary.items() for words in headings}


# Names of columns that tables of sets and tables of clients have.
CLIENT_NAMES = _listed("client, client name, customer, athlete, athlete name, cliente, kunde, name of client")
EMAILS = _listed("""
    email, e mail, email address, client email, mail, customer email, customer e mail, client e mail, athlete email
    client email address, member email, user email, trainee email
    correo, correo electronico, email del cliente, correo del cliente
""")
FIRST_NAMES = ("first name", "firstname", "given name", "client first name")
LAST_NAMES = ("surname", "last name", "lastname", "family name", "client last name", "apellido", "apellidos")
# Headings of a date that have the start of a session where another column has the date.
STARTS = _listed("start time, hora de inicio, inicio, startzeit, beginn, heure de debut, debut, ora di inizio, inizio")

# Each name is normalized: lower case, without accents and signs. Units and what is in brackets are read separately.
VOCABULARY: Mapping[Field, tuple[str, ...]] = {
    "customer": (
        *CLIENT_NAMES,
        *_listed("""
            full name, full client name, client full name, customer name, member, member name, user, user name
            username, trainee, trainee name
            nombre completo, nombre del cliente, nombre de cliente, usuario, alumno, alumna, atleta
            kundenname
            nom complet, nom du client
            nome completo, nome do cliente, nome del cliente
        """),
    ),
    "customerId": _listed("""
        client id, customer id, athlete id, member id, user id, trainee id, external id, externalid
        id de cliente, id cliente, id del cliente
        kunden id
    """),
    "customerEmail": (*EMAILS,),
    "firstName": (*FIRST_NAMES, "athlete first name", "member first name", "vorname", "prenom"),
    "lastName": (*LAST_NAMES, "athlete last name", "member last name", "nachname", "nom de famille", "cognome"),
    "date": ("date", "day", "workout date", "fecha", "dia", "datum", "data", *STARTS),
    "time": _listed("""
        time of day, start, started, started at, start hour, session start, session start time, start of session
        workout start, workout start time, start of workout, time of session, time of workout
        hora, hora inicio, hora del dia, hora de comienzo, comienzo, horario
        uhrzeit, startuhrzeit, tageszeit
        heure
        ora, orario
    """),
    "end": _listed("""
        end time, end
        hora de fin, hora de finalizacion, fin
        endzeit, ende
        heure de fin
        ora di fine, fine
        hora de termino, fim
    """),
    "duration": _listed("""
        workout duration, duration
        duracion, duracion del entrenamiento
        dauer, workout dauer, trainingsdauer
        duree, duree de l entrainement
        durata, durata allenamento, durata dell allenamento
        duracao, duracao do treino
    """),
    "workout": _listed("""
        workout name, workout, workout title, title, session, routine
        entrenamiento, nombre del entrenamiento, rutina, titulo
        titel, trainingsname, name des workouts
        titre, nom de l entrainement, nom de la seance
        titolo, nome allenamento, nome dell allenamento
        nome do treino
    """),
    "workoutNotes": _listed("""
        workout notes, description
        notas del entrenamiento, descripcion
        workout notizen, trainingsnotizen, beschreibung
        notes de l entrainement
        note allenamento, note dell allenamento, descrizione
        notas do treino, descricao
    """),
    "exercise": _listed("""
        exercise, exercise name, exercise title, movement, lift
        ejercicio, nombre del ejercicio, titulo del ejercicio
        ubung, name der ubung, ubungsname, titel der ubung, ubungstitel
        exercice, nom de l exercice, titre de l exercice
        esercizio, nome esercizio, nome dell esercizio, titolo dell esercizio, titolo esercizio
        exercicio, nome do exercicio, titulo do exercicio
    """),
    "set": _listed("""
        set, set order, set index, set number
        serie, orden de la serie, orden de serie, indice de la serie, indice de serie
        satz, satz reihenfolge, satzindex, satz index
        ordre de la serie, ordre des series, index de la serie
        ordine serie, ordine della serie, indice della serie, indice serie
        ordem da serie, ordem das series, indice da serie
    """),
    "setKind": _listed("""
        set type, type of set, kind
        tipo de serie, satztyp, satz typ, type de serie, tipo serie, tipo di serie
    """),
    "sets": ("sets", "series", "satze"),
    "reps": _listed("""
        reps, rep, repetitions
        repeticiones, wiederholungen, wdh, repetitions par serie, ripetizioni, repeticoes
    """),
    "load": ("weight", "load", "peso", "carga", "gewicht", "poids", "charge", "carico"),
    "loadUnit": ("weight unit", "load unit", "unidad de peso", "gewichtseinheit", "unite de poids", "unita di peso"),
    "distance": ("distance", "distancia", "distanz", "entfernung", "distanza"),
    "distanceUnit": ("distance unit", "unidad de distancia", "distanzeinheit", "unite de distance"),
    "seconds": _listed("""
        seconds, duration seconds, time, set duration
        segundos, tiempo, duracion segundos
        sekunden, zeit, dauer sekunden
        secondes, temps, duree secondes
        secondi, tempo, durata secondi
        duracao segundos
    """),
    "rpe": ("rpe", "effort", "esfuerzo"),
    "rir": ("rir", "reps in reserve"),
    "notes": _listed("""
        notes, note, comment, comments, exercise notes
        notas, comentario, notas del ejercicio
        notizen, kommentar, ubungsnotizen, notizen zur ubung
        notes de l exercice
        note dell esercizio
        notas do exercicio
    """),
    "superset": _listed("""
        superset, superset id
        superserie, id de superserie, id de la superserie, superserie id
        supersatz, supersatz id
        id superserie, id da superserie
    """),
    "isCompleted": ("is completed", "completed"),
    "isWarmup": _listed("""
        is warmup, iswarmup, is warm up, is warmup set, is warm up set, warmup, warm up, warmup set, warm up set
        es calentamiento, calentamiento
        aufwarmsatz, aufwarmen
        echauffement
        riscaldamento
        aquecimento
    """),
}

KINDS: Mapping[str, SetKind] = by_words(
    {
        "normal": (
            "",
            *_listed("normal, normale, regular, working, working set, work, work set"),
            *_listed("top, top set, backoff, back off, back off set"),
        ),
        "warmup": _listed("""
            w, warmup, warm up, warmup set, warm up set
            calentamiento, aufwarmen, aufwarmsatz, echauffement, riscaldamento, aquecimento
        """),
        "drop": _listed("d, drop, dropset, drop set, dropsatz, serie descendente, degressive, serie degressive"),
        "failure": _listed(
            "f, failure, to failure, fallo, al fallo, echec, cedimento, falha, versagen, muskelversagen"
        ),
    }
)
# Rows between sets, and those with a comment on the exercise.
NOT_SETS = _listed("""
    rest timer, rest, rest time, timer
    descanso, temporizador de descanso
    pause, pausentimer, ruhe, ruhe timer, ruhetimer
    repos, minuteur de repos, recupero, timer di recupero
""")
COMMENTS = _listed("note, notes, nota, notiz, notizen, remarque, commentaire")
YES = _listed("""
    true, yes, y, 1, x, \u2713, \u2714, \u2705, \u2611, \u221a, done, completed, complete
    si, ja, oui, sim, verdadero, wahr, vrai, vero, verdadeiro, hecho, erledigt, fait, fatto, feito
""")
NO = _listed("""
    false, no, n, 0, none, -, n/a, \u2717, \u2718, \u274c, \u2610, not done, incomplete, skipped, missed
    nein, non, nao, falso, falsch, faux, keine, ninguno
""")
# Words in place of the repetitions of an attempt that did not succeed.
FAILED = _listed("fail, failed, miss, missed, no lift")
_TOTAL = re.compile(
    r"(?:sub|grand )?totals?(?: (?:volume|reps|sets|load|weight|tonnage))?|totale|totaux|sum|suma|summe|somme|gesamt"
)


def is_total(text: str) -> bool:
    """Return whether a cell of names says that its row has the sum of others."""
    return _TOTAL.fullmatch(normalize(text).strip(": ")) is not None


# --- Headings of columns, in any case and order -----------------------------------------------------------------------


Unit = Literal["kg", "lb", "km", "mi", "m", "yd", "cm", "in", "s", "min", "h"]
Amount = tuple[Cell, Unit | None]  # a cell with the unit that its heading has

_UNIT_WORDS: Mapping[str, Unit] = by_words(
    {
        "kg": ("kg", "kgs", "kilos", "kilogram", "kilograms", "kilo", "kilogramo", "kilogramos"),
        "lb": ("lb", "lbs", "pound", "pounds", "libra", "libras"),
        "km": ("km", "kms", "kilometers", "kilometres", "kilometer", "kilometre", "kilometro", "kilometros"),
        "mi": ("mi", "mile", "miles", "milla", "millas"),
        "m": ("m", "meter", "meters", "metre", "metres", "metro", "metros"),
        "yd": ("yd", "yds", "yard", "yards", "yarda", "yardas"),
        "min": ("min", "mins", "minutes"),
    }
)
_UNITS_OF_HEADINGS: Mapping[str, Unit] = {
    **_UNIT_WORDS,
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "std", "stunden", "horas", "heures", "ore"), "h"),
}
_UNITS_IN_BRACKETS: Mapping[str, Unit] = {
    **_UNITS_OF_HEADINGS,
    **dict.fromkeys(("s", "sec", "secs", "seconds", "sek", "seg"), "s"),
    **dict.fromkeys(("minutos", "minuten", "minuti"), "min"),
}
_SIGNS = re.compile(r"[^a-z0-9%]+")
_IN_BRACKETS = re.compile(r"^(.*)[(\[](.*)[)\]]\s*$")
_KG_OR_LB = re.compile(r"(.+?) (?:kgs?|lbs?)(?: (?:or|o|ou|oder))? (?:kgs?|lbs?)")
_HOURS_AND_MINUTES = re.compile(r"(?:h{1,2} m{1,2}|(?:12|24) ?h)(?: (?:a|am pm|tt))?")
_TIME_PATTERN = re.compile(r"h{1,2} m{1,2} s{1,2}(?: (?:a|am pm|tt))?|m{1,2} s{1,2}")
_DATE_PATTERN = re.compile(r"([a-z]+) ([a-z]+) ([a-z]+)(?: h{1,2} m{1,2}(?: s{1,2})?)?")
_DATE_ORDERS: Mapping[str, DateOrder] = {"dmy": "dmy", "mdy": "mdy", "ymd": "ymd"}
# The parts of patterns such as `dd/mm/yyyy`; `j` is a day in French and a year in German.
_DATE_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("d", "dd", "t", "tt", "g", "gg", "day", "dia", "tag", "jour", "giorno"), "d"),
    **dict.fromkeys(("m", "mm", "mmm", "month", "mes", "monat", "mois", "mese"), "m"),
    **dict.fromkeys(("y", "yy", "yyyy", "a", "aa", "aaaa", "year", "ano", "jahr", "annee", "anno", "jjjj"), "y"),
    **dict.fromkeys(("j", "jj"), "j"),
}


@dataclass(frozen=True)
class Heading:
    """A heading as it is compared: its words, and what a hint behind them says.

    `unit` and `date_order` (of a pattern such as `dd/mm/yyyy`) are None without one, `hint` is empty.
    """

    words: str
    unit: Unit | None = None
    hint: str = ""
    date_order: DateOrder | None = None


@lru_cache(maxsize=4096)
def read_heading(text: str) -> Heading:
    """Return the words and the hint of a heading: `Weight (lbs)` and `weight_lbs` are `weight` in lb.

    What is in brackets and neither a unit nor a pattern of dates or times belongs to the words; `kg/lb` is no unit.
    """
    if (either := _KG_OR_LB.fullmatch(_words(text))) is not None:
        return Heading(either[1])
    found = _IN_BRACKETS.match(normalize(text))
    if found is not None:
        words, hint = _words(found[1]), _words(found[2])
        if (unit := _UNITS_IN_BRACKETS.get(hint)) is not None:
            return Heading(words, unit, hint)
        if _HOURS_AND_MINUTES.fullmatch(hint) or _TIME_PATTERN.fullmatch(hint):
            return Heading(words, "h" if _HOURS_AND_MINUTES.fullmatch(hint) else None, hint)
        pattern = _DATE_PATTERN.fullmatch(hint)
        parts = "" if pattern is None else "".join(_DATE_PARTS.get(part, "?") for part in pattern.groups())
        order = "ymd" if hint == "yyyymmdd" else _DATE_ORDERS.get(parts.replace("j", "y" if "d" in parts else "d"))
        if order is not None:
            return Heading(words, None, hint, order)
    words = _words(text)
    first, _, last = words.rpartition(" ")
    if first and (unit := _UNITS_OF_HEADINGS.get(last)) is not None:
        return Heading(first, unit, last)
    return Heading(words)


@lru_cache(maxsize=1024)
def unit_of(text: str) -> Unit | None:
    """Return the unit that a word is; None if it is none."""
    return _UNIT_WORDS.get(_words(text))


def words_of(headings: Sequence[Cell]) -> set[str]:
    """Return the words of headings."""
    return {read_heading(heading).words for heading in headings if isinstance(heading, str)}


def _words(text: str) -> str:
    return _SIGNS.sub(" ", normalize(text).replace("#", " number ")).strip()


FIELD_OF: Mapping[str, Field] = by_words(VOCABULARY)
