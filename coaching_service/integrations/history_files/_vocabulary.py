"""The words of the headings of each field and of kinds of sets, in the languages that files come in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from coaching_service.core.text import normalize

Name = TypeVar("Name", bound=str)
Field = (
    Literal["customer", "customerId", "customerEmail", "firstName", "lastName"]
    | Literal["date", "time", "end", "duration", "workout", "workoutNotes"]
    | Literal["exercise", "set", "setKind", "sets", "reps", "load", "loadUnit", "distance", "distanceUnit", "seconds"]
    | Literal["rpe", "rir", "notes", "superset", "isCompleted", "isWarmup", "leftOut"]
)
SetKind = Literal["normal", "warmup", "drop", "failure"]


def _words(text: str) -> tuple[str, ...]:
    """Return the words in a text: commas are between them, and the lines divide them by languages."""
    return tuple(words for line in text.split("\n") for each in line.split(",") if (words := each.strip()))


def by_words(vocabulary: Mapping[Name, Sequence[str]]) -> dict[str, Name]:
    """Return what each heading of a vocabulary means, by its words."""
    return {words: name for name, headings in vocabulary.items() for words in headings}


# Names of columns that tables of sets and tables of clients have.
CLIENT_NAMES = _words("client, client name, customer, athlete, athlete name, cliente, kunde, name of client")
EMAILS = _words("""
    email, e mail, email address, client email, mail, customer email, customer e mail, client e mail, athlete email
    client email address, member email, user email, trainee email
    correo, correo electronico, email del cliente, correo del cliente
""")
FIRST_NAMES = ("first name", "firstname", "given name", "client first name")
LAST_NAMES = ("surname", "last name", "lastname", "family name", "client last name", "apellido", "apellidos")
# Headings of a date that have the start of a session where another column has the date.
STARTS = _words("start time, hora de inicio, inicio, startzeit, beginn, heure de debut, debut, ora di inizio, inizio")

# Each name is normalized: lower case, without accents and signs. Units and what is in brackets are read separately.
VOCABULARY: Mapping[Field, tuple[str, ...]] = {
    "customer": (
        *CLIENT_NAMES,
        *_words("""
            full name, full client name, client full name, customer name, member, member name, user, user name
            username, trainee, trainee name
            nombre completo, nombre del cliente, nombre de cliente, usuario, alumno, alumna, atleta
            kundenname
            nom complet, nom du client
            nome completo, nome do cliente, nome del cliente
        """),
    ),
    "customerId": _words("""
        client id, customer id, athlete id, member id, user id, trainee id, external id, externalid
        id de cliente, id cliente, id del cliente
        kunden id
    """),
    "customerEmail": (*EMAILS,),
    "firstName": (*FIRST_NAMES, "athlete first name", "member first name", "vorname", "prenom"),
    "lastName": (*LAST_NAMES, "athlete last name", "member last name", "nachname", "nom de famille", "cognome"),
    "date": ("date", "day", "workout date", "fecha", "dia", "datum", "data", *STARTS),
    "time": _words("""
        time of day, start, started, started at, start hour, session start, session start time, start of session
        workout start, workout start time, start of workout, time of session, time of workout
        hora, hora inicio, hora del dia, hora de comienzo, comienzo, horario
        uhrzeit, startuhrzeit, tageszeit
        heure
        ora, orario
    """),
    "end": _words("""
        end time, end
        hora de fin, hora de finalizacion, fin
        endzeit, ende
        heure de fin
        ora di fine, fine
        hora de termino, fim
    """),
    "duration": _words("""
        workout duration, duration
        duracion, duracion del entrenamiento
        dauer, workout dauer, trainingsdauer
        duree, duree de l entrainement
        durata, durata allenamento, durata dell allenamento
        duracao, duracao do treino
    """),
    "workout": _words("""
        workout, workout name, workout title, title, session, routine
        entrenamiento, nombre del entrenamiento, rutina, titulo
        titel, trainingsname, name des workouts
        titre, nom de l entrainement, nom de la seance
        titolo, nome allenamento, nome dell allenamento
        nome do treino
    """),
    "workoutNotes": _words("""
        workout notes, description
        notas del entrenamiento, descripcion
        workout notizen, trainingsnotizen, beschreibung
        notes de l entrainement
        note allenamento, note dell allenamento, descrizione
        notas do treino, descricao
    """),
    "exercise": _words("""
        exercise, exercise name, exercise title, movement, lift
        ejercicio, nombre del ejercicio, titulo del ejercicio
        ubung, name der ubung, ubungsname, titel der ubung, ubungstitel
        exercice, nom de l exercice, titre de l exercice
        esercizio, nome esercizio, nome dell esercizio, titolo dell esercizio, titolo esercizio
        exercicio, nome do exercicio, titulo do exercicio
    """),
    "set": _words("""
        set, set order, set index, set number
        serie, orden de la serie, orden de serie, indice de la serie, indice de serie
        satz, satz reihenfolge, satzindex, satz index
        ordre de la serie, ordre des series, index de la serie
        ordine serie, ordine della serie, indice della serie, indice serie
        ordem da serie, ordem das series, indice da serie
    """),
    "setKind": _words("""
        set type, type of set, kind
        tipo de serie, satztyp, satz typ, type de serie, tipo serie, tipo di serie
    """),
    "sets": ("sets", "series", "satze"),
    "reps": _words("""
        reps, rep, repetitions
        repeticiones, wiederholungen, wdh, repetitions par serie, ripetizioni, repeticoes
    """),
    "load": ("weight", "load", "peso", "carga", "gewicht", "poids", "charge", "carico"),
    "loadUnit": ("weight unit", "load unit", "unidad de peso", "gewichtseinheit", "unite de poids", "unita di peso"),
    "distance": ("distance", "distancia", "distanz", "entfernung", "distanza"),
    "distanceUnit": ("distance unit", "unidad de distancia", "distanzeinheit", "unite de distance"),
    "seconds": _words("""
        seconds, duration seconds, time, set duration
        segundos, tiempo, duracion segundos
        sekunden, zeit, dauer sekunden
        secondes, temps, duree secondes
        secondi, tempo, durata secondi
        duracao segundos
    """),
    "rpe": ("rpe", "effort", "esfuerzo"),
    "rir": ("rir", "reps in reserve"),
    "notes": _words("""
        notes, note, comment, comments, exercise notes
        notas, comentario, notas del ejercicio
        notizen, kommentar, ubungsnotizen, notizen zur ubung
        notes de l exercice
        note dell esercizio
        notas do exercicio
    """),
    "superset": _words("""
        superset, superset id
        superserie, id de superserie, id de la superserie, superserie id
        supersatz, supersatz id
        id superserie, id da superserie
    """),
    "isCompleted": ("is completed", "completed"),
    "isWarmup": _words("""
        iswarmup, is warmup, is warm up, is warmup set, is warm up set, warmup, warm up, warmup set, warm up set
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
            *_words("normal, normale, regular, working, working set, work, work set"),
            *_words("top, top set, backoff, back off, back off set"),
        ),
        "warmup": _words("""
            w, warmup, warm up, warmup set, warm up set
            calentamiento, aufwarmen, aufwarmsatz, echauffement, riscaldamento, aquecimento
        """),
        "drop": _words("d, drop, dropset, drop set, dropsatz, serie descendente, degressive, serie degressive"),
        "failure": _words("f, failure, to failure, fallo, al fallo, echec, cedimento, falha, versagen, muskelversagen"),
    }
)
# Rows between sets, and those with a comment on the exercise.
NOT_SETS = _words("""
    rest timer, rest, rest time, timer
    descanso, temporizador de descanso
    pause, pausentimer, ruhe, ruhe timer, ruhetimer
    repos, minuteur de repos, recupero, timer di recupero
""")
COMMENTS = _words("note, notes, nota, notiz, notizen, remarque, commentaire")
YES = _words("""
    true, yes, y, 1, x, \u2713, \u2714, \u2705, \u2611, \u221a, done, completed, complete
    si, ja, oui, sim, verdadero, wahr, vrai, vero, verdadeiro, hecho, erledigt, fait, fatto, feito
""")
NO = _words("""
    false, no, n, 0, none, -, n/a, \u2717, \u2718, \u274c, \u2610, not done, incomplete, skipped, missed
    nein, non, nao, falso, falsch, faux, keine, ninguno
""")
# Words in place of the repetitions of an attempt that did not succeed.
FAILED = _words("fail, failed, miss, missed, no lift")
_TOTAL = re.compile(
    r"(?:sub|grand )?totals?(?: (?:volume|reps|sets|load|weight|tonnage))?|totale|totaux|sum|suma|summe|somme|gesamt"
)


def is_total(text: str) -> bool:
    """Return whether a cell of names says that its row has the sum of others."""
    return _TOTAL.fullmatch(normalize(text).strip(": ")) is not None
