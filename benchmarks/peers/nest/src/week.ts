// A calendar week with the fields that the service derives; see benchmarks/presented_week.py. The blocks are changed in place.
import type { Record_ } from "./models.js";

const NULL_IN_BLOCKS = [
  "externalId", "assignmentId", "checkInId", "feeling", "plannedDate",
  "startTime", "programBlockId", "programBlockVersion", "createdBy", "source",
];

// Adds the derived fields to stored blocks of one client, which are sorted by date.
export function presentWeek(blocks: Record_[], loadUnit: string): Record_[] {
  const blocksOfDay = new Map<string, number>();
  for (const block of blocks) {
    const order = blocksOfDay.get(block.date) ?? 0;
    blocksOfDay.set(block.date, order + 1);
    for (const name of NULL_IN_BLOCKS) block[name] ??= null;
    block.metadata = Object.fromEntries((block.metadata ?? []).map((entry: Record_) => [entry.key, entry.value]));
    block.order = order;
    block.isCompleted = block.items.length > 0 && block.items.every((item: Record_) => item.isCompleted);
    block.items = block.items.map((item: Record_, at: number) => presentItem(item, at, block.version, loadUnit));
  }
  return blocks;
}

function presentItem(stored: Record_, order: number, version: number, loadUnit: string): Record_ {
  const { exerciseIds: _, doneExerciseIds: __, tally: ___, isPendingForm: ____, clientTexts: _____, ...item } = stored;
  item.pain ??= null;
  item.skipped ??= null;
  item.swappedFor ??= null;
  item.order = order;
  item.version = version;
  item.mediaCount = 0;
  for (const planned of item.exerciseSets ?? []) planned.variables = variablesOf(planned, loadUnit);
  return item;
}

// The planned quantities of a set, with their units.
function variablesOf(planned: Record_, loadUnit: string): Record_[] {
  const variables: Record_[] = [];
  const add = (key: string, unit: string, low: unknown, high: unknown = null) => {
    const [first, last] = [low ?? high ?? null, high ?? low ?? null];
    if (first === null) return;
    const value = first === last ? { type: "exact", value: first } : { type: "range", min: first, max: last };
    variables.push({ key, unit, value });
  };
  add("reps", "count", planned.minPlannedReps, planned.maxPlannedReps);
  add("load", loadUnit, planned.load);
  add("time", "s", planned.minPlannedSeconds, planned.maxPlannedSeconds);
  add("distance", "m", planned.plannedMeters);
  add("rest", "s", planned.rest);
  add("rir", "count", planned.rir);
  add("rpe", "rpe", planned.rpe);
  return variables;
}
