// @hey-api/openapi-ts with its fetch client: list, create, schedule, log, upload.

import { client } from "../generated/hey-api/client.gen.js";
import {
  createCustomer,
  createProgressPhoto,
  createWorkoutBlock,
  createWorkoutItem,
  listCustomers,
  listExercises,
  logWorkoutItem,
} from "../generated/hey-api/sdk.gen.js";
import { baseUrl, equal, headers, monday, picture, present } from "./session.js";

client.setConfig({ baseUrl, headers });
const throwOnError = true as const;
const { data: customer } = await createCustomer({ body: { name: "Bo", sendInvitation: false }, throwOnError });
const { data: page } = await listCustomers({
  query: { archived: false, pageSize: 50, pageNum: 1, contains: "Bo" },
  throwOnError,
});
equal(page.docs.some((entry) => entry._id === customer._id), true, "the client is listed");

const { data: exercises } = await listExercises({ query: { pageSize: 1, pageNum: 1 }, throwOnError });
const exercise = present(exercises.docs[0], "an exercise");
const path = { customerId: customer._id };
const { data: block } = await createWorkoutBlock({ path, body: { name: "Lower body", date: monday }, throwOnError });
const blockId = present(block._id, "the identifier of the block");
const { data: item } = await createWorkoutItem({
  path: { ...path, wblockId: blockId },
  body: {
    type: "EXERCISE",
    exerciseId: exercise._id,
    exerciseSets: [{ type: "reps_load", minPlannedReps: 8, maxPlannedReps: 8, load: 60 }],
  },
  throwOnError,
});
const { data: logged } = await logWorkoutItem({
  path: { ...path, wblockId: blockId, witemId: item._id },
  body: { type: "EXERCISE", customerSets: [{ reps: 8, load: 60 }] },
  throwOnError,
});
equal(logged.isCompleted, true, "completed");

const { data: photo } = await createProgressPhoto({
  path,
  body: { imageFile: picture(), createdAt: monday, imageSideIndex: "1" },
  throwOnError,
});
present(photo.photos.frontUrl, "the link to the photo");
