// The mongoose models of the collections that the peer reads and writes. The service creates collections and indexes.
import mongoose, { Schema, Types } from "mongoose";
import paginate from "mongoose-paginate-v2";

const options = { versionKey: false as const, autoIndex: false, autoCreate: false, minimize: false };
const { Mixed, ObjectId } = Schema.Types;
const stamps = { companyId: ObjectId, createdAt: Date, updatedAt: Date, version: Number };

// Fields of clients that no response has, and fields of planned and done sets that were not sent.
export const PRIVATE = [
  "sortName", "sortSurname", "search", "suf", "firstAccessHash", "scheduleChanges", "figuresUntil", "attention", "notifications",
  "language", "erasureRequestedAt",
];
export const UNSET = {
  rest: null, rpe: null, rir: null, tempo: null, loadPercent: null, isWarmup: false, isAmrap: false, perSide: false, setKind: "normal",
};
export const NOT_DONE = {
  exerciseId: null, round: null, seconds: null, meters: null, rpe: null, rir: null, isWarmup: false, setKind: "normal",
};

// A document or a part of one whose fields are not declared.
export type Record_ = { [name: string]: any };

export interface Item {
  _id: Types.ObjectId;
  type: string;
  exerciseId?: Types.ObjectId;
  exerciseSets?: Record<string, unknown>[];
  customerSets?: Record<string, unknown>[];
  [name: string]: unknown;
}

export interface Block {
  _id: Types.ObjectId;
  name: string;
  date: string;
  items: Item[];
  [name: string]: unknown;
}

export interface Customer {
  _id: Types.ObjectId;
  name: string;
  surname: string | null;
  email: string | null;
  createdAt: Date;
  customerRoleData: Record<string, unknown>;
  attention?: { score: number; reasons: unknown[] };
  [name: string]: unknown;
}

const roleData = new Schema(
  {
    isArchived: Boolean,
    groups: [String],
    assignedTo: ObjectId,
    customerType: String,
    complianceRate7d: Number,
    complianceRate30d: Number,
    complianceRate90d: Number,
    complianceDate: String,
    lastWorkoutDate: String,
    lastTrainedDate: String,
    firstLoginDate: Date,
  },
  { _id: false },
);

const customerSchema = new Schema(
  {
    ...stamps,
    name: { type: String, required: true },
    surname: String,
    email: String,
    phone: String,
    birthday: String,
    timezone: String,
    role: String,
    profilePhoto: Mixed,
    lastActivityDate: Date,
    customerRoleData: roleData,
    firstAccessHash: String,
    figuresUntil: Date,
    scheduleChanges: Number,
    sortName: String,
    sortSurname: String,
    search: String,
    suf: { type: [String], default: undefined },
    attention: Mixed,
  },
  { ...options, collection: "customers" },
);
customerSchema.plugin(paginate);

const itemSchema = new Schema(
  {
    type: { type: String },
    exerciseId: ObjectId,
    exerciseSets: { type: [Mixed], default: undefined },
    exerciseInstructions: String,
    taskFields: Mixed,
    supersetId: ObjectId,
    isCompleted: Boolean,
    completedAt: Date,
    comment: String,
    pain: Mixed,
    customerSets: { type: [Mixed], default: undefined },
    createdAt: Date,
    updatedAt: Date,
    exerciseIds: { type: [ObjectId], default: undefined },
    doneExerciseIds: { type: [ObjectId], default: undefined },
    tally: Mixed,
  },
  { strict: false, minimize: false },
);

const blockSchema = new Schema(
  { ...stamps, customerId: ObjectId, name: String, date: String, items: [itemSchema] },
  { ...options, strict: false, collection: "workoutBlocks" },
);

const plain = (collection: string) => new Schema({}, { ...options, strict: false, collection });

export const customers = mongoose.model<any, mongoose.PaginateModel<any>>("Customer", customerSchema as any);
export const blocks = mongoose.model<any>("Block", blockSchema as any);
export const keys = mongoose.model<any>("Key", plain("apiKeys"));
export const companies = mongoose.model<any>("Company", plain("companies"));
export const exercises = mongoose.model<any>("Exercise", plain("exercises"));
export const changeNumbers = mongoose.model<any>("ChangeNumbers", plain("changeNumbers"));
export const changes = mongoose.model<any>("Change", plain("changes"));
export const ownChanges = mongoose.model<any>("OwnChange", plain("bareChanges"));
export const totals = mongoose.model<any>("Total", plain("customerTotals"));
export const uses = mongoose.model<any>("Use", plain("bareUses"));
export const records = mongoose.model<any>("PersonalRecord", plain("personalRecords"));
export const metricSets = mongoose.model<any>("MetricSet", plain("metricSets"));
