"""The muscles that the name of an exercise says it trains, in English and Spanish."""

from __future__ import annotations

from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises._name_words import one_spelling
from coaching_service.library.exercises._search_index import ABBREVIATIONS, split_words
from coaching_service.library.exercises.models import MuscleRole
from coaching_service.library.exercises.muscles import ID_OF

# Words of names (several spellings of the same separated by a semicolon), and the muscles: the first one does most of
# the work. The first line of whose words all are in a name counts, so that a leg curl is no biceps curl.
_MUSCLES_BY_WORDS: tuple[tuple[str, str], ...] = (
    ("leg curl; hamstring curl; nordic; curl femoral; curl pierna", "Hamstrings"),
    ("wrist; forearm; reverse curl; farmer; muneca", "Forearms"),
    ("hammer curl; curl martillo", "Biceps, Forearms"),
    ("leg extension; quad extension; extension pierna; extension cuadricep", "Quadriceps"),
    ("back extension; hyperextension; superman; extension lumbar", "Lower Back, Glutes, Hamstrings"),
    ("hip thrust; glute bridge; kickback glute; puente gluteo; empuje cadera", "Glutes, Hamstrings"),
    ("triceps kickback; tricep", "Triceps"),
    ("tibialis", "Tibialis Anterior"),
    ("calf", "Calves"),
    ("adductor", "Adductors"),
    ("abductor; clamshell", "Abductors, Glutes"),
    ("leg press; prensa", "Quadriceps, Glutes"),
    ("leg raise; knee raise; toe to bar; elevacion pierna; elevacion rodilla", "Abdominals, Hip Flexors"),
    ("lateral raise; side raise; elevacion lateral", "Side Deltoids"),
    ("front raise; elevacion frontal", "Front Deltoids"),
    ("rear delt; reverse fly; rear fly; face pull; pajaro", "Rear Deltoids, Upper Back"),
    ("rotator cuff; external rotation; internal rotation; rotacion externa; rotacion interna", "Rotator Cuff"),
    ("close grip bench", "Triceps, Chest"),
    ("overhead press; shoulder press; military press; arnold; press militar; press hombro", "Front Deltoids, Triceps"),
    ("upright row", "Side Deltoids, Trapezius"),
    ("bench press; floor press; chest press; press banca; press plano", "Chest, Triceps, Front Deltoids"),
    ("push up; pushup; flexion pecho; flexion brazo", "Chest, Triceps"),
    ("skull crusher; skullcrusher; pushdown; pressdown; french press; press frances", "Triceps"),
    ("dip; fondo", "Triceps, Chest"),
    ("fly; flye; pec deck; crossover; apertura; chest", "Chest"),
    ("pull up; pullup; chin up; chinup; dominada", "Latissimus Dorsi, Biceps"),
    ("pulldown; pull down; pullover; lat; jalon", "Latissimus Dorsi"),
    ("shrug; trap; encogimiento", "Trapezius"),
    ("row; remo; upper back", "Upper Back, Latissimus Dorsi, Biceps"),
    ("split squat; lunge; step up; zancada; estocada", "Quadriceps, Glutes"),
    ("squat; sentadilla", "Quadriceps, Glutes"),
    ("romanian; stiff leg; straight leg; good morning; rumano", "Hamstrings, Glutes"),
    ("deadlift; peso muerto; rack pull", "Glutes, Hamstrings, Lower Back"),
    ("kettlebell swing", "Glutes, Hamstrings"),
    ("twist; oblique; side bend; woodchop; wood chop; pallof; side plank", "Obliques, Abdominals"),
    ("crunch; sit up; situp; plank; plancha; ab; rollout; hollow; dead bug", "Abdominals"),
    ("curl; bicep", "Biceps"),
    ("hamstring", "Hamstrings"),
    ("quad", "Quadriceps"),
    ("glute", "Glutes"),
    ("shoulder; delt", "Front Deltoids"),
    ("neck", "Neck"),
    ("back", "Upper Back"),
)


def _words_of(text: str) -> frozenset[str]:
    words = split_words(normalize(without_apostrophes(text)).replace("(", " ").replace(")", " "))
    return frozenset(one_spelling(part) for word in words for part in (word, *ABBREVIATIONS.get(word, ())))


_RULES = tuple(
    ([_words_of(words) for words in line.split("; ")], names.split(", ")) for line, names in _MUSCLES_BY_WORDS
)


def muscles_in_name(name: str) -> list[MuscleRole]:
    """Return the muscles that a name says its exercise trains; none if it does not say it."""
    words = _words_of(name)
    for spellings, muscles in _RULES:
        if any(each <= words for each in spellings):
            return [
                {"_id": ID_OF[muscle], "role": "secondary" if index else "primary"}
                for index, muscle in enumerate(muscles)
            ]
    return []
