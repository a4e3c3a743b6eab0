// The parts of the library that are written by hand, without the service: npm test

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { connect, pages, policyOf, verifyWebhook, walk, WebhookVerificationError, withRetries } from "coaching-service-client";

const customers = "https://coaching.test/api/coach/customers";
const atOnce = { attempts: 5, baseSeconds: 0, longestWaitSeconds: 60 };
const json = { "Content-Type": "application/json" };
const busy = (headers: Record<string, string> = {}) => new Response("", { status: 503, headers });
type Step = Response | Error;

/** Sends one request to a service that responds with these steps in turn; the last response and all requests. */
async function send(steps: Step[], url: string, init: RequestInit = {}): Promise<[Response, Request[]]> {
  const requests: Request[] = [];
  const respond = async (request: Request): Promise<Response> => {
    requests.push(request);
    await request.clone().arrayBuffer();
    const step = steps.shift();
    if (step === undefined || step instanceof Error) throw step ?? new Error("no more responses");
    return step;
  };
  return [await withRetries(respond, atOnce, "/api")(new Request(url, init)), requests];
}

test("a safe request is repeated after failures", async () => {
  const [response, requests] = await send([new TypeError("cut"), busy(), busy({ "Retry-After": "0" }), new Response("{}")], customers);
  assert.equal(response.status, 200);
  assert.equal(requests.length, 4);
});

test("attempts are limited", async () => {
  const [response, requests] = await send([busy(), busy(), busy(), busy(), busy()], customers);
  assert.equal(response.status, 503);
  assert.equal(requests.length, 5);
});

test("each attempt to create has the same key and body", async () => {
  const running = new Response('{"code": "IDEMPOTENCY_KEY_IN_USE"}', { status: 409, headers: json });
  const created = new Response("{}", { status: 201 });
  const body = { method: "POST", body: '{"name": "Ana"}', headers: json };
  const [response, requests] = await send([new TypeError("cut"), running, created], customers, body);
  assert.equal(response.status, 201);
  assert.equal(new Set(requests.map((request) => request.headers.get("Idempotency-Key"))).size, 1);
  assert.match(requests[0]?.headers.get("Idempotency-Key") ?? "", /^[0-9a-f-]{36}$/);
  assert.deepEqual(await Promise.all(requests.map((request) => request.text())), Array(3).fill('{"name": "Ana"}'));
});

test("an unsafe request is sent once", async () => {
  for (const [method, path] of [["POST", "/auth/login"], ["POST", "/unknown"], ["PATCH", "/coach/account"]]) {
    const [response, requests] = await send([busy()], `https://coaching.test/api${path}`, { method, body: "{}", headers: json });
    assert.equal(response.status, 503);
    assert.equal(requests[0]?.headers.has("Idempotency-Key"), false);
  }
});

test("a request that changed nothing is repeated, one that may have changed something only if it is safe", async () => {
  const refused = (code: string) => new Response(JSON.stringify({ code }), { status: 503, headers: json });
  const login = "https://coaching.test/api/auth/login";
  const post = { method: "POST", body: "{}", headers: json };
  const [repeated, requests] = await send([refused("UNAVAILABLE"), new Response("{}")], login, post);
  assert.deepEqual([repeated.status, requests.length], [200, 2]);
  const [once] = await send([refused("OUTCOME_UNKNOWN"), new Response("{}")], login, post);
  assert.equal(once.status, 503);
  const [created] = await send([refused("OUTCOME_UNKNOWN"), new Response("{}", { status: 201 })], customers, post);
  assert.equal(created.status, 201);
  await assert.rejects(send([new TypeError("cut"), new Response("{}")], login, post));
});

test("a change is repeated only with its version", async () => {
  const customer = `${customers}/0123456789abcdef01234567`;
  const change = (body: object) => ({ method: "PATCH", body: JSON.stringify(body), headers: json });
  const [repeated] = await send([busy(), new Response("{}")], customer, change({ name: "Ana", version: 3 }));
  assert.equal(repeated.status, 200);
  const [once] = await send([busy()], customer, change({ name: "Ana" }));
  assert.equal(once.status, 503);
});

test("other errors are final, and so is a wait that is too long", async () => {
  for (const status of [400, 404, 409, 500]) {
    const [response] = await send([new Response('{"code": "ANY"}', { status, headers: json })], customers, { method: "POST" });
    assert.equal(response.status, status);
  }
  const [response] = await send([busy({ "Retry-After": "61" })], customers);
  assert.equal(response.status, 503);
});

test("a literal path comes first", () => {
  assert.equal(policyOf("POST", "/coach/customers"), "idempotencyKey");
  assert.equal(policyOf("POST", "/exercises/resolve"), "safe");
  assert.equal(policyOf("POST", "/auth/login"), "never");
});

test("walking meets every entry once", async () => {
  const list = async ({ query }: { query?: { limit: number; after?: string }; throwOnError: true }) => {
    const start = Number(query?.after ?? 0);
    const docs = [0, 1, 2, 3, 4, 5, 6].slice(start, start + (query?.limit ?? 7));
    return { data: { docs, nextCursor: String(start + docs.length), hasMore: start + docs.length < 7 } };
  };
  const met: number[] = [];
  for await (const entry of walk(list, { query: { limit: 3 } })) met.push(entry);
  assert.deepEqual(met, [0, 1, 2, 3, 4, 5, 6]);
  let count = 0;
  for await (const page of pages(list, { query: { limit: 3 } })) count += page.docs.length > 0 ? 1 : 0;
  assert.equal(count, 3);
});

test("a client has exactly one credential", () => {
  assert.throws(() => connect({ baseUrl: "https://coaching.test" }));
  assert.throws(() => connect({ baseUrl: "https://coaching.test", apiKey: "key", accessToken: "token" }));
});

test("the example of the Standard Webhooks specification is verified", () => {
  mock.timers.enable({ apis: ["Date"], now: 1614265330_000 });
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const headers = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "Webhook-Timestamp": "1614265330",
    "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  assert.deepEqual(verifyWebhook(secret, '{"test": 2432232314}', new Headers(headers)), { test: 2432232314 });
  assert.throws(() => verifyWebhook(secret, '{"test": 2432232315}', headers), WebhookVerificationError);
  mock.timers.setTime(1614265330_000 + 301_000);
  assert.throws(() => verifyWebhook(secret, '{"test": 2432232314}', headers), WebhookVerificationError);
  mock.timers.reset();
});
