const input = "./generated/openapi.json";

export default {
  fetch: {
    input,
    output: {
      client: "fetch",
      target: "generated/orval/fetch.ts",
      schemas: "generated/orval/model",
      mode: "split",
      baseUrl: { getBaseUrlFromSpecification: true },
    },
  },
  zod: { input, output: { client: "zod", target: "generated/orval/zod.ts" } },
};
