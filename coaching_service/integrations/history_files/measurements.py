"""Tables of body measurements: a row for each value, or a row for each day with a column for each measurement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from typing import IO, Literal, cast

from coaching_service.core.text import normalize
from coaching_service.core.validation import CalendarDate
from coaching_service.integrations.history_files import tables, values
from coaching_service.integrations.history_files._dialects import CLIENT_FIELDS, DIALECTS, Cells
from coaching_service.integrations.history_files.set_files import OpenPoints
from coaching_service.integrations.history_files.set_rows import Answers, FileRow, client_of
from coaching_service.library.metric_sets import UNITS

MAX_ROWS = 50_000  # in memory while they are imported
# Units of the same kind, by how much of the first they are.
_KINDS: tuple[Mapping[str, float], ...] = (
    {"kg": 1.0, "lb": 0.45359237, "g": 0.001, "st": 6.35029318},
    {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, "ft": 0.3048, "km": 1000.0, "mi": 1609.344},
    {"s": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0},
    {"l": 1.0, "ml": 0.001},
)
# What is asked for if values of a metric in one of these units have none; the units are the options.
UNITS_ASKED: Mapping[Literal["LOAD_UNIT", "DISTANCE_UNIT", "DURATION_UNIT"], tuple[str, ...]] = {
    "LOAD_UNIT": ("kg", "lb"),
    "DISTANCE_UNIT": ("cm", "in"),
    "DURATION_UNIT": ("s", "min", "h"),
}
_UNIT_OF: Mapping[str, str] = {
    **{normalize(text): unit["shortName"] for unit in UNITS.values() for text in (unit["name"], unit["shortName"])},
    **dict.fromkeys(("kgs", "kilo", "kilos", "kilogram", "kilogramm", "kilogramos", "kilogrammes", "quilos"), "kg"),
    **dict.fromkeys(("lbs", "pound", "libras", "libra", "pfund", "livres", "libbre"), "lb"),
    **dict.fromkeys(("st", "stone", "stones"), "st"),
    **dict.fromkeys(("mm", "millimeters", "millimetres"), "mm"),
    **dict.fromkeys(("cms", "centimeter", "centimetre", "centimetres", "zentimeter", "centimetros"), "cm"),
    **dict.fromkeys(("inch", '"', "''", "\u2033", "zoll", "pulgadas", "pouces", "pollici", "polegadas"), "in"),
    **dict.fromkeys(("ft", "foot", "feet"), "ft"),
    **dict.fromkeys(("percent", "percentage", "pct", "prozent", "porcentaje", "pourcentage", "percentuale"), "%"),
    **dict.fromkeys(("sec", "secs"), "s"),
    **dict.fromkeys(("mins", "minuten", "minutos", "minuti"), "min"),
    **dict.fromkeys(("hr", "hrs", "stunden", "horas", "heures", "ore"), "h"),
}
# What measurements are called in six languages; semicolons are between them.
_SYNONYMS = """
weight, body weight, bodyweight, body mass, scale weight, current weight, peso, peso corporal, peso corporeo,
gewicht, korpergewicht, poids, poids corporel;
body fat, bodyfat, fat, body fat percentage, fat percentage, bf, grasa, grasa corporal, porcentaje de grasa
corporal, korperfett, korperfettanteil, graisse corporelle, taux de masse grasse, grasso corporeo,
gordura corporal;
lean mass, lean body mass, masa magra, magermasse, masse maigre, massa magra;
muscle mass, masa muscular, muskelmasse, masse musculaire, massa muscolare, massa muscular;
neck, cuello, hals, halsumfang, cou, tour de cou, collo, pescoco;
shoulders, shoulder, hombros, schultern, schulterumfang, epaules, tour d epaules, spalle, ombros;
chest, bust, pecho, brust, brustumfang, poitrine, tour de poitrine, petto, torace, peito;
waist, cintura, taillenumfang, tour de taille, vita, girovita;
abdomen, belly, stomach, vientre, bauch, bauchumfang, ventre, addome, barriga;
hips, hip, cadera, caderas, hufte, huftumfang, hanches, tour de hanches, fianchi, quadril;
biceps, bicep, arm, arms, upper arm, brazo, arm umfang, oberarm, oberarmumfang, bizeps, bras, tour de bras, braccio,
bicipite, braco;
left biceps, left bicep, left arm, left upper arm, brazo izquierdo, linker arm, linker oberarm, bras gauche, braccio
sinistro, braco esquerdo;
right biceps, right bicep, right arm, right upper arm, brazo derecho, rechter arm, rechter oberarm, bras droit,
braccio destro, braco direito;
forearm, forearms, antebrazo, unterarm, avant bras, avambraccio, antebraco;
left forearm, antebrazo izquierdo, linker unterarm, avant bras gauche, avambraccio sinistro, antebraco esquerdo;
right forearm, antebrazo derecho, rechter unterarm, avant bras droit, avambraccio destro, antebraco direito;
thigh, thighs, muslo, oberschenkel, cuisse, tour de cuisse, coscia, coxa;
left thigh, muslo izquierdo, linker oberschenkel, cuisse gauche, coscia sinistra, coxa esquerda;
right thigh, muslo derecho, rechter oberschenkel, cuisse droite, coscia destra, coxa direita;
calf, calves, pantorrilla, gemelo, wade, wadenumfang, mollet, polpaccio, panturrilha;
left calf, pantorrilla izquierda, linke wade, mollet gauche, polpaccio sinistro, panturrilha esquerda;
right calf, pantorrilla derecha, rechte wade, mollet droit, polpaccio destro, panturrilha direita;
resting heart rate, resting hr, rhr, frecuencia cardiaca en reposo, ruhepuls, frequence cardiaque au repos,
frequenza cardiaca a riposo
"""
_MEANING: Mapping[str, str] = {
    " ".join(name.split()): names.partition(",")[0].strip()
    for names in _SYNONYMS.split(";")
    for name in names.split(",")
}
_NAMES = {"measurement", "measure", "metric", "measurement name", "measurement type", "metric name", "type"} | {
    *("medida", "medicion", "metrica", "messung", "messwert", "mesure", "misura", "misurazione", "medicao")
}
_VALUES = {"value", "amount", "result", "valor", "wert", "valeur", "valore"}
_UNIT_HEADINGS = {"unit", "units", "unidad", "einheit", "unite", "unita", "unidade"}
_NAME = ("name", "nombre", "nom", "nome")
_OF_SETS = {"exercise", "reps", "sets", "set", "setKind"}
_NO_METRICS = ("time", "end", "notes", "workoutNotes")
_IN_BRACKETS = re.compile(r"(.*?)[(\[]([^()\[\]]+)[)\]]\s*")
_SIGNS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class Measured:
    """A value as the file has it; `name` is the measurement as written, `unit` None without one."""

    name: str
    amount: float
    unit: str | None


@dataclass
class MeasuredRow:
    """A row of measurements; `day` is None if it cannot be read, or (`is_open`) until a question is answered."""

    row: tables.Row
    client: str
    client_id: str
    day: date | None = None
    instant: datetime | None = None
    is_open: bool = False
    values: list[Measured] = field(default_factory=list)
    problems: list[tables.Problem] = field(default_factory=list)

    def report(self, name: str | None, code: str, message: str) -> None:
        """Report a problem."""
        self.problems.append(self.row.problem(name, code, message))


@dataclass
class Measurements:
    """A file of measurements; `sheets` are those that are not read, `unread` the columns."""

    rows: list[MeasuredRow]
    names: Counter[str]
    people: Counter[tuple[str, str]]
    questions: list[tables.Question]
    sheets: list[tables.Problem]
    unread: list[tables.ProblemKind]
    date_order: values.DateOrder | None
    decimal_sign: values.DecimalSign | None


@lru_cache(maxsize=4096)
def split_unit(text: str) -> tuple[str, str | None]:
    """Return the words of a name or heading, and the unit at its end: `weight_kg`, `Waist (cm)`, `Body fat %`."""
    plain = normalize(text).replace("_", " ")
    if (found := _IN_BRACKETS.fullmatch(plain)) and (unit := _UNIT_OF.get(found[2].strip())) is not None:
        return _SIGNS.sub(" ", found[1]).strip(), unit
    first, _, last = plain.replace("%", " %").rpartition(" ")
    if first.strip() and (len(last) > 1 or last == "%") and (unit := _UNIT_OF.get(last)) is not None:
        return _SIGNS.sub(" ", first).strip(), unit
    return _SIGNS.sub(" ", plain).strip(), None


def meaning_of(name: str) -> str:
    """Return what is the same for all usual names of a measurement; of another name its words."""
    words = split_unit(name)[0]
    return _MEANING.get(words, words)


def convert(amount: float, unit: str, target: str) -> float | None:
    """Return an amount in another unit, rounded to 0.01; None if the units are of different kinds."""
    if unit == target:
        return amount
    kind = next((each for each in _KINDS if unit in each and target in each), None)
    return None if kind is None else round(amount * kind[unit] / kind[target], 2)


def has_kind(unit: str) -> bool:
    """Return whether there are other units of the same kind, so that a value without a unit may be in several."""
    return unit != "g" and any(unit in kind for kind in _KINDS)


def is_of_measurements(file: IO[bytes], answers: Answers, known: Collection[str]) -> bool:
    """Return whether a file has measurements and no sets; `known` are the names of the metrics of the company."""
    names = {split_unit(each)[0] for each in known}
    try:
        found = [
            each.headings for each in tables.read_tables(file, lambda cells: _count_headings(cells, answers, names))
        ]
    except tables.UnreadableTable:
        return False
    if any(dialect.matches(values.words_of(headings)) for headings in found for dialect in DIALECTS):
        return False
    layouts = [each for headings in found if (each := _layout_of(headings, answers, names)) is not None]
    meanings = {meaning_of(each) for each in known}
    for layout in layouts:
        metrics = [each for each, name in zip(layout.headings, layout.fields, strict=True) if name == "metric"]
        may_be_of_clients = len(metrics) == 1 and not {*CLIENT_FIELDS}.isdisjoint(layout.fields)
        if not may_be_of_clients or meanings.intersection(map(meaning_of, metrics)):
            return True
    return False


def read_measurements(
    file: IO[bytes], answers: Answers, known: Collection[str], *, takes_any: bool = False
) -> Generator[int, None, Measurements]:
    """Read a file; yields the number of each row. `takes_any`: every other column is a measurement.

    Raises UnreadableTable.
    """
    names = {split_unit(each)[0] for each in known}
    found: list[tuple[_Layout, list[tables.Row]]] = []
    sheets: list[tables.Problem] = []
    number, points = 0, OpenPoints()

    def count(cells: Sequence[tables.Cell]) -> int:
        return _count_headings(cells, answers, names)

    for table in tables.read_tables(file, count, is_divided=True):
        layout = _layout_of(table.headings, answers, names, takes_any=takes_any)
        if layout is None:
            sheets.append(tables.unknown_sheet(table, "measurements"))
            continue
        layout = replace(layout, is_text=table.is_text)
        rows: list[tables.Row] = []
        needed, carried = ("value", "metric"), ("date", *CLIENT_FIELDS)
        for row in tables.fill_down(
            table.rows, layout.fields, carried, lead=CLIENT_FIELDS, kept=carried[:1], needed=needed
        ):
            number += 1
            if number > MAX_ROWS:
                message = f"has more than {MAX_ROWS:,} rows: divide it into several files"
                raise tables.UnreadableTable(message, row.line)
            rows.append(row)
            points.add(layout.survey(row, answers))
            yield number
        found.append((layout, rows))
    if not found:
        raise tables.UnreadableTable(
            "has no measurements: they need a date, and columns such as Weight and Waist, or Measurement and Value"
        )
    # The order of the dates that all of them fit, else the one that a heading says.
    fitting = points.orders or set()
    said = next((each.date_order for each, _ in found if each.date_order), None)
    order = answers.date_order or (next(iter(fitting)) if len(fitting) == 1 else said)
    sign = answers.decimal_sign or (points.decimal_sign if points.depends_on_sign else None)
    read = [each.read(row, order, sign) for each, rows in found for row in rows]
    points.has_unknown_dates = any(measured.is_open for measured in read)
    unread = [kind for layout, _ in found for kind in layout.unread.values() if kind["count"]]
    written = Counter(each.name for measured in read for each in measured.values)
    people = Counter((measured.client, measured.client_id) for measured in read)
    return Measurements(read, written, people, list(points.questions()), sheets, unread, order, sign)


@dataclass(frozen=True)
class _Layout:
    """What the columns of a table have: a field of sets, `measure`, `value`, `unit` or `metric`; None: not read.

    `is_text`: a row with more cells than headings may have its values in other columns.
    """

    headings: Sequence[str]
    fields: Sequence[str | None]
    unread: dict[int, tables.ProblemKind]
    date_order: values.DateOrder | None
    is_text: bool = False

    def survey(self, row: tables.Row, answers: Answers) -> FileRow:
        """Return what a row tells about the order of dates and the decimal sign of the file."""
        cell = self._cell(row, "date")
        text = cell if isinstance(cell, str) and values.depends_on_order(cell, answers.date_order) else ""
        numbers = [
            (each, signs)
            for each, name in zip(row.cells, self.fields, strict=False)
            if name in ("value", "metric") and isinstance(each, str) and (signs := values.decimal_signs(each))
        ]
        orders = (values.possible_orders(text) or None) if text else None
        return FileRow(row.line, [], [], text, orders, numbers=[] if answers.decimal_sign else numbers)

    def read(self, row: tables.Row, order: values.DateOrder | None, sign: values.DecimalSign | None) -> MeasuredRow:
        """Return the measurements of a row."""
        cells = cast("Cells", {name: (cell, None) for name, cell in zip(self.fields, row.cells, strict=False) if name})
        client_id = tables.text_of(self._cell(row, "customerId")) or tables.text_of(self._cell(row, "customerEmail"))
        read = MeasuredRow(row, client_of(cells), client_id)
        surplus = row.find_surplus(self.headings)
        if surplus is not None and self.is_text:
            read.problems.append(surplus)
            return read
        for number in row.unsolved:  # formulas without results
            if number < len(self.fields) and self.fields[number]:
                read.report(self.headings[number][:100], "VALUE_LEFT_OUT", tables.UNSOLVED)
        for number, cell in enumerate(row.cells):
            if cell is not None and (number >= len(self.headings) or not self.headings[number]):
                self.unread.setdefault(number, tables.unread_column(number))
        tables.count_cells(self.unread, row)
        self._read_day(read, self._cell(row, "date"), order)
        unit_text = tables.text_of(self._cell(row, "unit"))
        for heading, name, cell in zip(self.headings, self.fields, row.cells, strict=False):
            if name in ("value", "metric") and cell is not None:
                written = tables.text_of(self._cell(row, "measure")) if name == "value" else heading
                if not written:
                    read.report("measurement", "REQUIRED", "is empty")
                    continue
                _read_value(read, written[:100], cell, unit_text, sign)
        if not read.values and not read.problems:
            read.report(None, "REQUIRED", "has no value")
        return read

    def _cell(self, row: tables.Row, name: str) -> tables.Cell:
        return row.cell(self.fields.index(name)) if name in self.fields else None

    def _read_day(self, read: MeasuredRow, cell: tables.Cell, order: values.DateOrder | None) -> None:
        try:
            moment = values.read_date_and_time(cell, order)
        except values.UnknownOrder as error:
            read.is_open = True
            read.report("date", "DATE_ORDER", str(error))
            return
        except values.InvalidValue as error:
            read.report("date", "INVALID_DATE", str(error))
            return
        first, last = CalendarDate.bounds()
        if moment is None:
            read.report("date", "REQUIRED", "is empty")
        elif not first <= str(moment.day) <= last:
            read.report("date", "INVALID_DATE", f"must be from {first} to {last}")
        else:
            read.day, read.instant = moment.day, moment.instant


def _read_value(
    read: MeasuredRow, name: str, cell: tables.Cell, unit_text: str, sign: values.DecimalSign | None
) -> None:
    """Add a value; its unit is behind the number, else in the column of units, else in the name or heading."""
    try:
        quantity = values.read_quantity(cell, sign)
    except values.InvalidValue as error:
        read.report(name, "VALUE_LEFT_OUT", str(error))
        return
    if quantity is None:
        return
    unit = split_unit(name)[1]
    for written in (quantity.unit, normalize(unit_text)):
        if written:
            if (unit := _UNIT_OF.get(written.strip(". "))) is None:
                read.report(name, "VALUE_LEFT_OUT", f"has a unit that is not known: {written[:50]}")
                return
            break
    read.values.append(Measured(name, quantity.amount, unit))


def _field_of(heading: str, answers: Answers, known: Collection[str]) -> str | None:
    if (answer := answers.columns.get(heading)) is not None:
        return answer or None
    words = split_unit(heading)[0]
    field = values.FIELD_OF.get(values.read_heading(heading).words)
    for name, headings in (("measure", _NAMES), ("value", _VALUES), ("unit", _UNIT_HEADINGS)):
        if words in headings:
            return name
    if field == "date" or field in CLIENT_FIELDS or field in _OF_SETS or words in _NAME:
        return "name" if words in _NAME else field
    return "metric" if words in known or words in _MEANING else None


def _layout_of(
    headings: Sequence[str], answers: Answers, known: Collection[str], *, takes_any: bool = False
) -> _Layout | None:
    """Return what the columns of a table of measurements have; None for another table."""
    fields = [_field_of(each, answers, known) for each in headings]
    is_long = "value" in fields and ("measure" in fields or "name" in fields)
    of_name = "measure" if is_long and "measure" not in fields else "customer"
    if of_name == "customer" and set(fields) & {"customer", "firstName"}:
        of_name = ""
    fields = [(of_name or None) if each == "name" else each for each in fields]
    if is_long:
        fields = [None if each == "metric" else each for each in fields]
    else:
        fields = [None if each in ("measure", "value", "unit") else each for each in fields]
    is_free = [
        name is None
        and bool(each)
        and answers.columns.get(each) != ""
        and values.FIELD_OF.get(values.read_heading(each).words) not in _NO_METRICS
        for name, each in zip(fields, headings, strict=True)
    ]
    if takes_any and not is_long:
        fields = ["metric" if free else each for each, free in zip(fields, is_free, strict=True)]
    count = fields.count("metric")
    is_wide = count > 1 or (count == 1 and not any(is_free))
    if "date" not in fields or _OF_SETS & {*fields} or not (is_long or is_wide or (takes_any and count)):
        return None
    unread: dict[int, tables.ProblemKind] = {}
    seen: set[str] = set()
    for number, heading in enumerate(headings):
        key = split_unit(heading)[0] if fields[number] == "metric" else fields[number] or ""
        is_repeated = bool(key) and key in seen
        seen.add(key)
        if is_repeated or (fields[number] is None and heading and answers.columns.get(heading) != ""):
            fields[number] = None
            code = "REPEATED_COLUMN" if is_repeated else "UNKNOWN_COLUMN"
            unread[number] = {"code": code, "column": heading[:100], "count": 0, "lines": []}
    dates = (
        values.read_heading(each).date_order for each, name in zip(headings, fields, strict=True) if name == "date"
    )
    return _Layout(headings, fields, unread, next(dates, None))


def _count_headings(cells: Sequence[tables.Cell], answers: Answers, known: Collection[str]) -> int:
    return sum(isinstance(each, str) and _field_of(each, answers, known) is not None for each in cells)
