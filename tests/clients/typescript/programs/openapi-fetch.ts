// openapi-typescript with openapi-fetch: list, create, schedule, log, upload.

import createClient from "openapi-fetch";

import type { paths } from "../generated/openapi-typescript.js";
import { baseUrl, equal, headers, monday, picture, present } from "./session.js";

const client = createClient<paths>({ baseUrl, headers });
const created = await client.POST("/coach/customers", { body: { name: "Ana", sendInvitation: false } });
const customer = present(created.data, "the client");
const page = await client.GET("/coach/customers", {
  params: { query: { archived: false, pageSize: 50, pageNum: 1, contains: "Ana" } },
});
equal(present(page.data, "the page").docs.some((entry) => entry._id === customer._id), true, "the client is listed");

const exercises = await client.GET("/exercises/unified", { params: { query: { pageSize: 1, pageNum: 1 } } });
const exercise = present(exercises.data?.docs[0], "an exercise");
const block = present(
  (
    await client.POST("/coach/customers/{customerId}/wblocks", {
      params: { path: { customerId: customer._id } },
      body: { name: "Lower body", date: monday },
    })
  ).data,
  "the block",
);
const blockId = present(block._id, "the identifier of the block");
const item = present(
  (
    await client.POST("/coach/customers/{customerId}/wblocks/{wblockId}/witems", {
      params: { path: { customerId: customer._id, wblockId: blockId } },
      body: {
        type: "EXERCISE",
        exerciseId: exercise._id,
        exerciseSets: [{ type: "reps_load", minPlannedReps: 8, maxPlannedReps: 10, load: 60 }],
      },
    })
  ).data,
  "the item",
);
if (item.type !== "EXERCISE") throw new Error("the item is not an exercise");
const [variable] = present(item.exerciseSets[0], "the set").variables;
equal(variable?.value.type === "range" && variable.value.max, 10, "planned repetitions");

const logged = await client.PUT("/coach/customers/{customerId}/wblocks/{wblockId}/witems/{witemId}/log", {
  params: { path: { customerId: customer._id, wblockId: blockId, witemId: item._id } },
  body: { type: "EXERCISE", customerSets: [{ reps: 8, load: 60 }] },
});
equal(present(logged.data, "the log").isCompleted, true, "completed");

const photo = await client.POST("/coach/customers/{customerId}/progress-photos", {
  params: { path: { customerId: customer._id } },
  body: { imageFile: "", createdAt: monday, imageSideIndex: "1" },
  bodySerializer: ({ createdAt, imageSideIndex }) => {
    const form = new FormData();
    form.set("imageFile", picture());
    form.set("createdAt", createdAt);
    form.set("imageSideIndex", imageSideIndex);
    return form;
  },
});
present(photo.data?.photos.frontUrl, "the link to the photo");
const missing = await client.GET("/coach/customers/{customerId}", {
  params: { path: { customerId: "0123456789abcdef01234567" } },
});
equal(missing.error && "code" in missing.error && missing.error.code, "CUSTOMER_NOT_FOUND", "the code of the error");
