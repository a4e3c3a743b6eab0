// orval with its fetch client, responses validated by its zod schemas: list, create, schedule, log, upload.

import {
  createCustomer,
  createProgressPhoto,
  createWorkoutBlock,
  createWorkoutItem,
  listCustomers,
  listExercises,
  logWorkoutItem,
} from "../generated/orval/fetch.js";
import {
  CreateProgressPhotoResponse,
  CreateWorkoutBlockResponse,
  CreateWorkoutItemResponse,
  ListCustomersResponse,
  LogWorkoutItemResponse,
} from "../generated/orval/zod.js";
import { equal, headers, monday, picture, present } from "./session.js";

const options = { headers };
const created = await createCustomer({ name: "Cy", sendInvitation: false }, options);
if (created.status !== 201) throw new Error(JSON.stringify(created.data));
const customerId = created.data._id;
const page = await listCustomers({ archived: false, pageSize: 50, pageNum: 1, contains: "Cy" }, options);
equal(ListCustomersResponse.parse(page.data).docs.some((entry) => entry._id === customerId), true, "listed");

const exercises = await listExercises({ pageSize: 1, pageNum: 1 }, options);
if (exercises.status !== 200) throw new Error(JSON.stringify(exercises.data));
const exercise = present(exercises.data.docs[0], "an exercise");
const scheduled = await createWorkoutBlock(customerId, { name: "Lower body", date: monday }, options);
const block = CreateWorkoutBlockResponse.parse(scheduled.data);
const blockId = present(block._id, "the identifier of the block");
const added = await createWorkoutItem(
  customerId,
  blockId,
  {
    type: "EXERCISE",
    exerciseId: exercise._id,
    exerciseSets: [{ type: "reps_load", minPlannedReps: 8, maxPlannedReps: 10, load: 60 }],
  },
  options,
);
const item = CreateWorkoutItemResponse.parse(added.data);
const body = { type: "EXERCISE" as const, customerSets: [{ reps: 8, load: 60 }] };
const logged = await logWorkoutItem(customerId, blockId, item._id, body, options);
equal(LogWorkoutItemResponse.parse(logged.data).isCompleted, true, "completed");

const photo = await createProgressPhoto(
  customerId,
  { imageFile: picture(), createdAt: monday, imageSideIndex: "1" },
  options,
);
present(CreateProgressPhotoResponse.parse(photo.data).photos.frontUrl, "the link to the photo");
