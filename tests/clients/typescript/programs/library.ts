// The client library: create, schedule, log, upload, walk, and what it does when requests fail. The company has 250 clients.

import {
  connect,
  createCustomer,
  createProgressPhoto,
  createWorkoutBlock,
  createWorkoutItem,
  getCustomer,
  inviteCustomer,
  listCustomers,
  listExercises,
  logWorkoutItem,
  updateCustomer,
  walk,
} from "../../../../clients/typescript/dist/index.js";
import { baseUrl, equal, headers, monday, picture, present } from "./session.js";

const apiKey = headers["X-API-Key"];
const failing = present(process.env.COACHING_FAILING_URL, "the address of the proxy");
const client = connect({ baseUrl, apiKey });
const throwOnError = true as const;
const everyone = { archived: false, pageSize: 50, pageNum: 1 };

const names: string[] = [];
for await (const entry of walk(listCustomers<true>, { client, query: everyone })) names.push(entry.name);
equal(names.length, 250, "clients");
equal(new Set(names).size, 250, "different clients");

const { data: customer } = await createCustomer({ client, body: { name: "Dee", sendInvitation: false }, throwOnError });
const { data: exercises } = await listExercises({ client, query: { pageSize: 1, pageNum: 1 }, throwOnError });
const exercise = present(exercises.docs[0], "an exercise");
const path = { customerId: customer._id };
const { data: block } = await createWorkoutBlock({ client, path, body: { name: "Lower body", date: monday }, throwOnError });
const blockId = present(block._id, "the identifier of the block");
const { data: item } = await createWorkoutItem({
  client,
  path: { ...path, wblockId: blockId },
  body: {
    type: "EXERCISE",
    exerciseId: exercise._id,
    exerciseSets: [{ type: "reps_load", minPlannedReps: 8, maxPlannedReps: 8, load: 60 }],
  },
  throwOnError,
});
const { data: logged } = await logWorkoutItem({
  client,
  path: { ...path, wblockId: blockId, witemId: item._id },
  body: { type: "EXERCISE", customerSets: [{ reps: 8, load: 60 }] },
  throwOnError,
});
equal(logged.isCompleted, true, "completed");
const { data: photo } = await createProgressPhoto({
  client,
  path,
  body: { imageFile: picture(), createdAt: monday, imageSideIndex: "1" },
  throwOnError,
});
present(photo.photos.frontUrl, "the link to the photo");

const busy = connect({ baseUrl: `${failing}/busy`, apiKey });
const cut = connect({ baseUrl: `${failing}/cut`, apiKey });
const { data: ana } = await createCustomer({ client: busy, body: { name: "Ana", sendInvitation: false }, throwOnError });
const { data: bo } = await createCustomer({ client: cut, body: { name: "Bo", sendInvitation: false }, throwOnError });
const changed = await updateCustomer({
  client: cut,
  path: { customerId: bo._id },
  body: { surname: "Blue", version: bo.version },
});
equal(changed.response?.status, 409, "the first attempt has succeeded");
const { data: read } = await getCustomer({ client: cut, path: { customerId: bo._id }, throwOnError });
equal(read.surname, "Blue", "the changed surname");
const once = await updateCustomer({ client: busy, path: { customerId: ana._id }, body: { surname: "Red" } });
equal(once.response?.status, 503, "a change without its version");
const invited = await inviteCustomer({ client: busy, path: { customerId: ana._id } });
equal(invited.response?.status, 503, "an unsafe request");
const { data: found } = await listCustomers({ client, query: { ...everyone, contains: "Bo" }, throwOnError });
equal(found.docs.map((entry) => entry.name).join(), "Bo", "clients named Bo");
const missing = await getCustomer({ client, path: { customerId: "0123456789abcdef01234567" } });
equal(missing.error && "code" in missing.error && missing.error.code, "CUSTOMER_NOT_FOUND", "the code of the error");
