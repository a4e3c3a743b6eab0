"""Making a program of a sheet: upload or paste, preview, names with choices, then the program."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.sampled import proof
from tests.support.visitor import HtmlPage, Visitor

PATH = "/app/programs/import"
SHEET = (
    "Week,Day,Exercise,Sets,Reps,Load,Notes\n"
    "1,Day 1: Push,Bench press,3,8-10,60,Slow\n"
    ",,Leo's rope flow,2,30s,heavy,\n"
    ",Day 2,REST,,,,\n"
    "2,Day 1: Push,Bench press,4,6,62.5,\n"
)


async def preview(page: Visitor, **fields: str) -> HtmlPage:
    return await page.submit(await page.get(PATH), f"{PATH}/preview", **fields)


def answers(page: HtmlPage) -> dict[str, str]:
    """The choices by name, with the field of each."""
    fields = dict(page.form(PATH).fields)
    return {fields[f"names.{row}.name"]: fields[f"names.{row}.answer"] for row in range(2)}


async def test_a_sheet_is_shown_and_becomes_a_program(coach: CoachClient, owner_page: Visitor) -> None:
    (await owner_page.get("/app/programs")).says("Import from a sheet")
    start = await owner_page.get(PATH)
    shown = await owner_page.submit(start, f"{PATH}/preview", file=("Spring.csv", SHEET.encode()))
    shown.ok().says(
        "2 workouts, 3 exercises. Nothing has been created yet.",
        "1 name in the sheet means no exercise that is here. It becomes a new exercise",
        "1 cell could not be read.",
        "Is no load (60, 60 kg, 135 lbs or 70%).",
        "Week 2",
        "Push Bench press 3x8-10 @60kg",
        "Rest",
    )
    assert (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["totalDocs"] == 0
    assert answers(shown)["Leo's rope flow"] == "create"

    created = await owner_page.submit(shown, PATH)

    created.ok().says("Spring created with 2 workout days.", "Leo's rope flow")
    (program,) = (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["docs"]
    blocks = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=20)).ok()
    assert [(each["day"], each["name"], each["isRest"]) for each in blocks] == [
        (1, "Push", False),
        (2, "Day 2", True),
        (8, "Push", False),
    ]
    assert blocks[0]["items"][1]["exerciseInstructions"] == "Load: heavy"
    names = await coach.ctx.db["importedNames"].count_documents({"companyId": coach.ctx.company_id})
    assert names == 0  # nothing was answered


async def test_cells_that_were_not_understood_are_corrected_in_the_weeks(
    coach: CoachClient, owner_page: Visitor
) -> None:
    own = await coach.create_exercise("House flow")
    table = (
        "Week\tDay\tExercise\tSets\tReps\tLoad (lbs)\tRest\tNotes\tMood\n"
        "1\t2\tLeo's rope flow\t3\ta few\theavy\t1 min\tSlow\tgood\n"
        "\t\t\t2\t6\t100\tsoon\t\t\n"
        "one\t3\tSquat\tmany\t5\t\t\t\t\n"
    )
    shown = (await preview(owner_page, table=table, name="Pasted")).ok()
    shown.says(
        "4 cells could not be read",
        "line 1: Mood is not a known column",
        "line 4: week is not the number of a week: one",
    )
    fields = dict(shown.form(PATH).fields)
    cells = {fields[f"cells.{at}.column"]: (fields[f"cells.{at}.text"], f"cells__{at}__text") for at in range(4)}
    assert [text for text, _ in cells.values()] == ["a few", "heavy", "soon", "many"]
    (rope,) = [at for at in range(2) if fields[f"names.{at}.name"] == "Leo's rope flow"]
    chosen = {f"names__{rope}__answer": own["_id"]}
    typed = {cells["reps"][1]: "8-10", cells["load"][1]: "20 kg", cells["rest"][1]: "later"}

    shown.form(PATH).action = f"{PATH}/changes"  # the button "Show again"
    again = (await owner_page.submit(shown, f"{PATH}/changes", **chosen, **typed)).ok()

    again.says(
        "2 cells could not be read", "3x8-10 @20kg rest 60s", "2x6 @45.36kg", "Rest: later", "line 4: week is not"
    )
    fields = dict(again.form(PATH).fields)
    assert fields[f"names.{rope}.answer"] == own["_id"]
    left = {fields[f"cells.{at}.column"]: f"cells__{at}__text" for at in range(2)}
    (await owner_page.submit(again, PATH, **{left["rest"]: "2 min", left["sets"]: "4"})).ok()
    (program,) = (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["docs"]
    blocks = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=7)).ok()
    (flow,), (squat,) = [each["items"] for each in blocks]
    assert (flow["exerciseId"], flow["exerciseInstructions"]) == (own["_id"], "Slow")
    assert [(each["minPlannedReps"], each["load"], each["rest"]) for each in flow["exerciseSets"]] == [
        (8, 20, 60),
        (8, 20, 60),
        (8, 20, 60),
        (6, 45.36, 120),
        (6, 45.36, 120),
    ]
    assert [each["minPlannedReps"] for each in squat["exerciseSets"]] == [5] * 4


@proof
async def test_of_very_many_cells_the_first_are_corrected_first(owner_page: Visitor) -> None:
    rows = "".join(f"{1 + at // 50},Squat,3,8,tough {at}\n" for at in range(310))
    shown = (await preview(owner_page, table=f"Day,Exercise,Sets,Reps,Load\n{rows}", name="Many")).ok()
    shown.says("310 cells could not be read")
    names = [name for name, _ in shown.form(PATH).fields if name.endswith(".text")]
    assert len(names) == 300
    shown.form(PATH).action = f"{PATH}/changes"
    typed = {name.replace(".", "__"): "60" for name in names}
    again = (await owner_page.submit(shown, f"{PATH}/changes", **typed)).ok()
    again.says("10 cells could not be read")


async def test_a_pasted_table_with_other_choices(coach: CoachClient, owner_page: Visitor) -> None:
    own = await coach.create_exercise("House press")
    table = SHEET.replace(",", "\t")
    shown = await preview(owner_page, table=table, name="Pasted", loadUnit="lb")
    shown.ok().says("Bench press 3x8-10 @60lb")
    fields = dict(shown.form(PATH).fields)
    chosen = {fields[f"names.{row}.name"]: f"names__{row}__answer" for row in range(2)}
    choices = {chosen["Bench press"]: own["_id"], chosen["Leo's rope flow"]: "skip"}
    (await owner_page.submit(shown, PATH, **choices)).ok().says("Pasted created with 2 workout days.")
    (program,) = (await coach.get("/coach/programs", archived="false", pageSize=5, pageNum=1)).ok()["docs"]
    blocks = (await coach.get(f"/coach/programs/{program['_id']}/wblock", startDay=1, endDay=20)).ok()
    ((press,), _, _) = [each["items"] for each in blocks]
    assert (press["exerciseId"], press["exerciseSets"][0]["load"]) == (own["_id"], 27.22)
    again = await preview(owner_page, table=table)
    assert answers(again) == {"Bench press": own["_id"], "Leo's rope flow": "skip"}


async def test_what_is_no_sheet_is_explained(owner_page: Visitor) -> None:
    (await preview(owner_page)).ok(400).says("must be chosen, or the table pasted below")
    (await preview(owner_page, table="Name\nAna")).ok(400).says("has no column with exercises; it has: Name")


async def test_a_long_sheet_with_many_names_becomes_a_program(owner_page: Visitor) -> None:
    rows = "".join(f"{1 + at // 10},{at} {'ж' * 190},3,8\n" for at in range(120))
    shown = (await preview(owner_page, table=f"Day,Exercise,Sets,Reps\n{rows}", name="Long")).ok()
    (await owner_page.submit(shown, PATH)).ok().says("Long created with 12 workout days.")


async def test_what_is_wrong_with_a_program_is_named(owner_page: Visitor) -> None:
    shown = await preview(owner_page, table=SHEET, name="Spring")
    wrong = await owner_page.submit(shown, PATH, name="x" * 201)
    wrong.ok(400).says("Name of the program: This must not be longer than 200 characters.")
    controls = wrong.form(f"{PATH}/preview").controls
    assert controls["name"]["value"] == "x" * 201


async def test_supersets_are_numbered_in_the_preview(owner_page: Visitor) -> None:
    table = "Day,Exercise,Sets,Reps\n1,A1) Row,3,8\n1,A2) Dip,3,8\n1,Plank,1,30s\n"
    (await preview(owner_page, table=table)).ok().says("A1 Row 3x8 A2 Dip 3x8 Plank 1x30s")
