"""The page of a client's results in an exercise."""

from __future__ import annotations

import json
import re
from datetime import timedelta

from coaching_service.web.formatting import format_date
from tests.support import training
from tests.support.client import UNKNOWN, CoachClient
from tests.support.visitor import Visitor


async def test_results_in_an_exercise_by_session(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    lunge = await coach.create_exercise("<Lunge>")
    today = coach.ctx.caller.today()
    days = [today - timedelta(days=ago) for ago in (60, 20, 1)]
    sets = [[{"reps": 5, "load": 80}], [{"reps": 1, "load": 95.5}, {"reps": 10, "load": 60}], [{"reps": 8}]]
    for day, done in zip(days, sets, strict=True):
        items = (training.exercise_of(squat), training.exercise_of(lunge))
        block = await training.block_with(coach, ana, *items, date=str(day))
        (await training.log(coach, block, block["items"][0], customerSets=done)).ok()
    (await training.log(coach, block, block["items"][1], customerSets=[{"reps": 12}])).ok()
    path = f"/app/customers/{ana['_id']}/progress"

    overview = (await owner_page.get(path)).ok().says("Exercises", "Squat 3 sessions,", "<Lunge> 1 session,")
    (link,) = (link for link in overview.links if squat["_id"] in link)
    page = (await owner_page.get(link)).ok()

    page.says("Estimated 1RM 95.5 kg latest", "Most reps without load 8 reps latest", "Volume load 695.5 kg latest")
    page.says("5 reps × 80 kg", "1 rep × 95.5 kg", "8 reps")
    assert page.html.count('<svg class="chart"') == 3
    first, *_ = (
        json.loads(block) for block in re.findall(r'<script type="application/json">(.*?)</script>', page.html)
    )
    assert first == {
        "label": "Estimated 1RM",
        "unit": "kg",
        "dates": [str(day) for day in days[:2]],
        "values": [93.3, 95.5],
    }
    assert "charts." in page.html
    (await owner_page.get(f"{path}/exercises/{squat['_id']}?weeks=4")).ok().says("95.5 kg", "8 reps")
    assert "93.3" not in (await owner_page.get(f"{path}/exercises/{squat['_id']}?weeks=4")).text
    lunges = (await owner_page.get(f"{path}/exercises/{lunge['_id']}")).ok().says("<Lunge>", "Most reps without load")
    assert "<Lunge>" not in lunges.html
    (await owner_page.get(f"{path}/exercises/{UNKNOWN}")).ok(404)
    row = await coach.create_exercise("Row")
    (await owner_page.get(f"{path}/exercises/{row['_id']}?weeks=4")).ok().says("No sessions in the last 4 weeks")
    records = (await owner_page.get(f"/app/customers/{ana['_id']}/records")).ok()
    assert f"{path}/exercises/{squat['_id']}?weeks=52" in records.links
    (name,) = re.findall(r'class="chart spark" role="img" aria-label="([^"]*)"', records.html)
    first, last = (format_date(day) for day in days[:2])
    assert " ".join(name.split()) == f"Estimated 1RM in the last year: from 93.3 kg on {first} to 95.5 kg on {last}"
    assert records.text.index("<Lunge> Most reps 12 reps") < records.text.index("Squat Heaviest load 95.5 kg")
    only = (await owner_page.get(f"/app/customers/{ana['_id']}/records?keywords=SQU")).ok().says("Heaviest load")
    assert 'class="tiles lifts"' in only.html
    assert "Lunge> Most" not in only.text
    (await owner_page.get(f"/app/customers/{ana['_id']}/records?keywords=row")).ok().says("No records found")
