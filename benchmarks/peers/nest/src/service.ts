// The operations, with the same look-ups and writes as the other peers' (benchmarks/operations.py).
import { createHash, createHmac, randomInt, randomUUID } from "node:crypto";
import { ConflictException, Injectable, NotFoundException, UnauthorizedException } from "@nestjs/common";
import mongoose, { ClientSession, Types } from "mongoose";
import type { Copy, Log, NewCustomer, NewItem } from "./bodies.js";
import {
  Block, Customer, Item, NOT_DONE, PRIVATE, Record_, UNSET, blocks, changeNumbers, changes, companies, customers, exercises, keys,
  metricSets, ownChanges, records, totals, uses,
} from "./models.js";
import { normalize, suffixes } from "./text.js";
import { presentWeek } from "./week.js";

const LOOKUP_KEY = Buffer.from(process.env.LOOKUP_KEY ?? "", "hex");
const HIDDEN = PRIVATE.map((name) => `-${name}`).join(" ");
const BLOCK_HIDES = "-companyId -position -done";
// `loadType` only of exercises whose loads are assistance.
const LOAD_TYPE = { $cond: [{ $eq: ["$loadType", "assistance"] }, "$loadType", "$$REMOVE"] };
const NAME = { name: 1, defaultInstructions: 1, loadType: LOAD_TYPE };
const BLOCK_ORDER = { date: 1, position: 1, _id: 1 } as const;
const DAY = 86_400_000;
const COUNTER_SLOTS = 8;

export type ItemPath = { customerId: string; wblockId: string; itemId?: string };

const id = (text: string) => new Types.ObjectId(text);

@Injectable()
export class CoachingService {
  async key(sent: string | undefined): Promise<Record_> {
    const hash = createHmac("sha256", LOOKUP_KEY).update(sent ?? "").digest("hex");
    const key = await keys.findOne({ hash }).lean<Record_>();
    if (key === null) throw new UnauthorizedException();
    return key;
  }

  async listCustomers(key: string, isArchived: boolean, page: number, limit: number) {
    const { companyId } = await this.key(key);
    const where = { companyId, "customerRoleData.isArchived": isArchived };
    const sort = { sortName: 1, sortSurname: 1, _id: 1 };
    const found = await customers.paginate(where, { page, limit, sort, select: HIDDEN, lean: true, leanWithId: false });
    return { docs: found.docs, totalDocs: found.totalDocs };
  }

  async readCalendar(key: string, customer: string, first: string, last: string, presented: boolean) {
    const { companyId } = await this.key(key);
    const customerId = id(customer);
    const where = { companyId, customerId, date: { $gte: first, $lte: last } };
    const [company, stored] = await Promise.all([
      this.findCompanyOfClient(companyId, customerId),
      blocks.find(where).select(BLOCK_HIDES).sort(BLOCK_ORDER).lean<Block[]>(),
    ]);
    const week = await this.withExercises(companyId, stored);
    return presented ? presentWeek(week, company.loadUnit) : week;
  }

  async listAttention(key: string, limit: number) {
    const { companyId } = await this.key(key);
    const where = { companyId, "customerRoleData.isArchived": false, "attention.score": { $gt: 0 } };
    const found = await customers
      .find(where)
      .select("name surname profilePhoto customerRoleData attention")
      .sort({ "attention.score": -1, _id: 1 })
      .limit(limit + 1)
      .lean<Customer[]>();
    return { docs: found.slice(0, limit).map(attentionEntry), hasMore: found.length > limit };
  }

  async listEvents(key: string, after: number, limit: number) {
    const { companyId } = await this.key(key);
    const numbered = await changeNumbers.aggregate<Record_>([
      { $match: { companyId, last: { $gt: after } } },
      { $sort: { last: 1 } },
      { $limit: limit + 1 },
      { $unwind: "$changes" },
      { $match: { "changes.lastSeq": { $gt: after } } },
      { $limit: limit + 1 },
      { $replaceWith: "$changes" },
    ]);
    const found = await changes
      .find({ _id: { $in: numbered.map((change) => change._id) }, companyId })
      .select("seq createdAt actor events")
      .hint("_id_")
      .lean<Record_[]>();
    found.sort((one, other) => one.seq - other.seq);
    const events = found.flatMap(eventsOf).filter((event) => event.seq > after);
    return { docs: events.slice(0, limit), hasMore: events.length > limit };
  }

  async createCustomer(key: string, body: NewCustomer, complete: boolean) {
    const apiKey = await this.key(key);
    const token = randomUUID();
    const document = newCustomer(apiKey.companyId, body, token);
    if (!complete) {
      await customers.create(document);
      return { ...shownCustomer(document), firstAccessToken: token };
    }
    Object.assign(document, searchFields(document));
    const slot = { companyId: apiKey.companyId, slot: randomInt(COUNTER_SLOTS) };
    const counted = { $inc: { active: 1, archived: 0 } };
    const automatic = { companyId: apiKey.companyId, deletedAt: null, assignAutomatically: true };
    const entry = customerChange(apiKey, document);
    await this.inTransaction(async (session) => {
      await customers.create([document], { session });
      await totals.updateOne(slot, counted, { upsert: true, session });
      await metricSets.find(automatic).session(session).lean();
      await ownChanges.create([entry], { session });
    });
    return { ...shownCustomer(document), firstAccessToken: token };
  }

  async addItem(key: string, path: ItemPath, body: NewItem, complete: boolean) {
    const apiKey = await this.key(key);
    const { companyId } = apiKey;
    const of = blockFilter(companyId, path);
    const [, known] = await Promise.all([
      this.requireClient(companyId, of.customerId),
      this.findExercises(companyId, [id(body.exerciseId)]),
    ]);
    if (known.length === 0) throw new NotFoundException();
    const item = storedItem(body);
    const update = { $push: { items: item }, $set: { updatedAt: item.updatedAt }, $inc: { version: 1 } };
    if (complete) {
      const entry = blockChange(apiKey, of.customerId, of._id, "createWorkoutItem", [], [item]);
      await this.inTransaction(async (session) => {
        await blocks.updateOne(of, update, { session });
        await this.markClient(companyId, of.customerId, item.updatedAt as Date, session);
        await ownChanges.create([entry], { session });
      });
      const use = { companyId, exerciseId: item.exerciseId };
      await uses.updateOne(use, { $inc: { count: 1 } }, { upsert: true, writeConcern: { w: 1, j: false } });
    } else if ((await blocks.updateOne(of, update)).modifiedCount === 0) {
      throw new NotFoundException();
    }
    return { ...item, exercise: known[0] };
  }

  async logItem(key: string, path: ItemPath, body: Log, complete: boolean) {
    const apiKey = await this.key(key);
    const { companyId } = apiKey;
    const of = blockFilter(companyId, path);
    const itemId = id(path.itemId ?? "");
    await this.requireClient(companyId, of.customerId);
    if (complete) return this.inTransaction((session) => this.logCompletely(apiKey, of, itemId, body, session));
    const stored = await blocks.findOne(of).select("items").lean<Block>();
    const item = logged(stored, itemId, body, new Date());
    const [exercise] = await this.findExercises(companyId, [item.exerciseId as Types.ObjectId]);
    const update = { $set: { "items.$": item, updatedAt: item.updatedAt }, $inc: { version: 1 } };
    await blocks.updateOne({ ...of, "items._id": itemId }, update);
    return { ...item, exercise };
  }

  private async logCompletely(
    apiKey: Record_, of: BlockFilter, itemId: Types.ObjectId, body: Log, session: ClientSession,
  ): Promise<Record_> {
    const { companyId, customerId, _id: wblockId } = of;
    const at = new Date();
    await this.markClient(companyId, customerId, at, session);
    const stored = await blocks.findOne(of).select(BLOCK_HIDES).session(session).lean<Block>();
    if (stored === null) throw new NotFoundException();
    const item = logged(stored, itemId, body, at);
    const before = stored.items.find((each) => each._id.equals(itemId));
    const update = { $set: { "items.$": item, updatedAt: at }, $inc: { version: 1 } };
    await blocks.updateOne({ ...of, "items._id": itemId }, update, { session });
    const exerciseId = item.exerciseId as Types.ObjectId;
    const [best, [exercise]] = await Promise.all([
      records.find({ companyId, customerId, exerciseId, source: "log" }).session(session).lean(),
      this.findExercises(companyId, [exerciseId]),
    ]);
    if (best.length === 0) throw new ConflictException();
    const entry = blockChange(apiKey, customerId, wblockId, "logWorkoutItem", [before], [item]);
    const data = {
      wblockId, blockName: stored.name, day: stored.date, witemId: itemId, itemType: item.type, itemName: exercise.name,
    };
    entry.feed = [{ _id: new Types.ObjectId(), type: "item.logged", sourceId: itemId, hiddenBy: null, data }];
    entry.feedCount = 1;
    const earlier = { companyId, customerId, feedCount: { $gt: 0 }, "feed.sourceId": itemId };
    await ownChanges.updateMany(earlier, { $set: { "feed.$[].hiddenBy": entry._id, feedCount: 0 } }, { session });
    await ownChanges.create([entry], { session });
    return { ...item, exercise };
  }

  async copyWeek(key: string, customer: string, body: Copy, complete: boolean) {
    const apiKey = await this.key(key);
    const { companyId } = apiKey;
    const customerId = id(customer);
    await this.requireClient(companyId, customerId);
    const where = { companyId, customerId, date: { $gte: body.startDate, $lte: body.endDate } };
    const source = await blocks.find(where).sort(BLOCK_ORDER).lean<Block[]>();
    const later = Date.parse(body.targetDate) - Date.parse(body.startDate);
    const copies = source.map((block) => copied(block, later, body.progression.load.add));
    if (complete) {
      const entry = blockChange(apiKey, customerId, null, "copySchedule", [], copies);
      await this.inTransaction(async (session) => {
        await blocks.insertMany(copies, { session });
        const last = copies.map((block) => block.date as string).sort().at(-1);
        await this.markClient(companyId, customerId, entry.createdAt, session, last);
        await ownChanges.create([entry], { session });
      });
    } else {
      await blocks.insertMany(copies);
    }
    const shown = copies.map(({ companyId: _, position: __, done: ___, ...block }: Record_) => block as Block);
    return { created: await this.withExercises(companyId, shown) };
  }

  // --- shared ------------------------------------------------------------------------------------------------------

  private async requireClient(companyId: Types.ObjectId, customerId: Types.ObjectId): Promise<void> {
    await this.findCompanyOfClient(companyId, customerId);
  }

  private async findCompanyOfClient(companyId: Types.ObjectId, customerId: Types.ObjectId): Promise<Record_> {
    const [company, client] = await Promise.all([
      companies.findOne({ _id: companyId }).lean<Record_>(),
      customers.findOne({ companyId, _id: customerId }).select("customerRoleData.assignedTo").lean(),
    ]);
    if (company === null || client === null) throw new NotFoundException();
    return company;
  }

  private findExercises(companyId: Types.ObjectId, ids: Types.ObjectId[]): Promise<Record_[]> {
    const where = { companyId: { $in: [null, companyId] }, _id: { $in: ids } };
    return exercises.find(where).select(NAME).hint("_id_").lean<Record_[]>().exec();
  }

  private async withExercises(companyId: Types.ObjectId, found: Block[]): Promise<Block[]> {
    const items = found.flatMap((block) => block.items).filter((item) => item.exerciseId);
    const ids = new Map(items.map((item) => [String(item.exerciseId), item.exerciseId as Types.ObjectId]));
    const known = new Map((await this.findExercises(companyId, [...ids.values()])).map((each) => [String(each._id), each]));
    for (const item of items) item.exercise = known.get(String(item.exerciseId));
    return found;
  }

  // `lastWorkout`: the last date of new blocks.
  private async markClient(
    companyId: Types.ObjectId, _id: Types.ObjectId, at: Date, session: ClientSession, lastWorkout?: string,
  ): Promise<void> {
    const last = lastWorkout === undefined ? {} : { $max: { "customerRoleData.lastWorkoutDate": lastWorkout } };
    const update = { $inc: { scheduleChanges: 1 }, $min: { figuresUntil: at }, ...last };
    await customers.updateOne({ companyId, _id }, update, { session });
  }

  private inTransaction<T>(write: (session: ClientSession) => Promise<T>): Promise<T> {
    return mongoose.connection.withSession((session) => session.withTransaction(() => write(session)));
  }
}

// --- documents -----------------------------------------------------------------------------------------------------

type BlockFilter = { companyId: Types.ObjectId; customerId: Types.ObjectId; _id: Types.ObjectId };

const blockFilter = (companyId: Types.ObjectId, path: ItemPath): BlockFilter => ({
  companyId, customerId: id(path.customerId), _id: id(path.wblockId),
});

function newCustomer(companyId: Types.ObjectId, body: NewCustomer, token: string): Record_ {
  const at = new Date();
  return {
    _id: new Types.ObjectId(),
    companyId,
    name: body.name,
    surname: body.surname ?? null,
    email: body.email ?? null,
    phone: body.phone ?? null,
    birthday: body.birthday ?? null,
    timezone: body.timezone ?? null,
    role: "CUSTOMER",
    profilePhoto: null,
    lastActivityDate: null,
    customerRoleData: {
      isArchived: false, groups: [], assignedTo: null, customerType: "REAL", complianceRate7d: null, complianceRate30d: null,
      complianceRate90d: null, complianceDate: null, lastWorkoutDate: null, lastTrainedDate: null, firstLoginDate: null,
    },
    firstAccessHash: createHash("sha256").update(token).digest("hex"),
    figuresUntil: at,
    sortName: normalize(body.name),
    sortSurname: normalize(body.surname ?? ""),
    createdAt: at,
    updatedAt: at,
    version: 0,
  };
}

function searchFields(customer: Record_): Record_ {
  const fullName = normalize(`${customer.name} ${customer.surname ?? ""}`);
  const email = normalize(customer.email ?? "");
  return { search: `${fullName}\n${email}`, suf: suffixes(fullName, email) };
}

function shownCustomer(customer: Record_): Record_ {
  const shown = { ...customer, profilePhotoUrl: null } as Record_;
  for (const name of [...PRIVATE, "profilePhoto"]) delete shown[name];
  return shown;
}

function attentionEntry({ _id, name, surname, customerRoleData: role, attention }: Customer): Record_ {
  const { groups, assignedTo, lastTrainedDate, complianceRate7d } = role;
  const customer = { _id, name, surname, profilePhotoUrl: null, groups, assignedTo, lastTrainedDate, complianceRate7d };
  return { customer, score: attention?.score, reasons: attention?.reasons };
}

function eventsOf(change: Record_): Record_[] {
  const actor = { type: change.actor.type, _id: change.actor._id };
  return change.events.map((event: Record_, number: number) => ({
    id: `${change._id}.${number}`,
    seq: change.seq + number,
    type: event.type,
    createdAt: change.createdAt,
    customerId: event.customerId,
    actor,
    data: event.data,
  }));
}

function entryOf(apiKey: Record_, customerId: Types.ObjectId, operation: string, document: Record_, type: string): Record_ {
  const at = new Date();
  const data = document.kind === "workout" ? { wblockId: document._id } : { customerId };
  return {
    _id: new Types.ObjectId(),
    companyId: apiKey.companyId,
    createdAt: at,
    updatedAt: at,
    version: 0,
    actor: { type: "key", _id: apiKey.coachId },
    via: "apiKey",
    credentialId: apiKey._id,
    operation,
    customerId,
    documents: [document],
    undoable: false,
    events: [{ type, customerId, data }],
    eventCount: 1,
    feed: [],
    feedCount: 0,
    feedAt: at,
    pending: new mongoose.mongo.Timestamp({ t: 0, i: 0 }),
    undoneBy: null,
    undoOf: null,
  };
}

function customerChange(apiKey: Record_, customer: Record_): Record_ {
  const document = { collection: "customers", kind: "customer", _id: customer._id, action: "created", fromVersion: 0, toVersion: 0 };
  return entryOf(apiKey, customer._id, "createCustomer", document, "customer.created");
}

function blockChange(
  apiKey: Record_, customer: Types.ObjectId, block: Types.ObjectId | null, operation: string, before: unknown[], after: unknown[],
): Record_ {
  const document = { collection: "workoutBlocks", kind: "workout", _id: block, action: "changed", fromVersion: 0, toVersion: 1 };
  const entry = entryOf(apiKey, customer, operation, document, "workout.updated");
  const patch = [{ _id: block, fields: [{ path: "items", elements: true, before, after }] }];
  return { ...entry, undoable: true, patch, patchUntil: new Date(entry.createdAt.getTime() + 30 * DAY) };
}

function logged(block: Block | null, itemId: Types.ObjectId, body: Log, at: Date): Item {
  const item = block?.items.find((each) => each._id.equals(itemId));
  if (item === undefined) throw new NotFoundException();
  const customerSets = body.customerSets.map(({ type: _, ...done }) => ({ ...NOT_DONE, ...done, isCompleted: true }));
  return { ...item, customerSets, isCompleted: true, updatedAt: at };
}

function storedItem(body: NewItem): Item {
  const at = new Date();
  const exerciseId = id(body.exerciseId);
  return {
    _id: new Types.ObjectId(),
    ...body,
    exerciseId,
    exerciseSets: body.exerciseSets.map((planned) => ({ ...UNSET, ...planned })),
    supersetId: null,
    isCompleted: false,
    completedAt: null,
    comment: null,
    pain: null,
    customerSets: [],
    createdAt: at,
    updatedAt: at,
    exerciseIds: [exerciseId],
    doneExerciseIds: [],
    tally: { sets: 0, reps: 0, volumeLoad: 0, exercises: [] },
  };
}

function copied(block: Block, later: number, added: number): Block {
  const at = new Date();
  const date = new Date(Date.parse(block.date) + later).toISOString().slice(0, 10);
  const stamps = { _id: new Types.ObjectId(), createdAt: at, updatedAt: at, version: 0, date };
  return { ...block, ...stamps, items: block.items.map((item) => copiedItem(item, at, added)) };
}

function copiedItem(item: Item, at: Date, added: number): Item {
  const copy: Item = { ...item, _id: new Types.ObjectId(), createdAt: at, updatedAt: at, isCompleted: false, customerSets: [] };
  if (item.exerciseSets !== undefined) {
    copy.exerciseSets = item.exerciseSets.map((planned) =>
      planned.load ? { ...planned, load: Number(planned.load) + added } : planned,
    );
  }
  return copy;
}
