// Repeats requests that failed, where the API document says that it is safe, and adds idempotency keys.
//
// The policy of each operation is its `x-retry-policy` in the API document: `safe` is repeated; `idempotencyKey` is sent with an
// `Idempotency-Key`, the same in each attempt, and repeated; `version` is repeated if the body has the `version` it is based on;
// `never`, and unknown operations, are sent once. Every request is repeated after a 503 with the code `UNAVAILABLE`: nothing was
// changed. A change that may have been saved (`OUTCOME_UNKNOWN`) is repeated only where the policy allows it.

import { policies } from "./generated/operations.js";

/** How often and how long requests are repeated. */
export interface Retries {
  /** At most so many attempts for each request, the first included. */
  attempts: number;
  /** The longest wait before the second attempt; it doubles with each further one, and the wait is a random part of it. */
  baseSeconds: number;
  /** No wait is longer. If the service asks for a longer one (`Retry-After`), its response is returned instead. */
  longestWaitSeconds: number;
}

export const defaultRetries: Retries = { attempts: 5, baseSeconds: 0.5, longestWaitSeconds: 60 };

type Send = (request: Request) => Promise<Response>;

const repeatableStatuses = new Set([429, 502, 503, 504]);
const keyHeader = "Idempotency-Key";

/** Sends requests with `send` as often as allowed and necessary. `prefix` is the path of the service's address. */
export function withRetries(send: Send, retries: Retries, prefix = ""): Send {
  return async (original) => {
    const [request, repeatable] = await prepare(original, prefix);
    for (let attempt = 1; attempt < retries.attempts; attempt += 1) {
      let seconds = Math.random() * Math.min(retries.baseSeconds * 2 ** (attempt - 1), retries.longestWaitSeconds);
      try {
        const response = await readJson(await send(request.clone()));
        const asked = await waitBeforeRepeating(request, response, seconds, repeatable);
        if (asked === undefined || asked > retries.longestWaitSeconds) return response;
        await response.body?.cancel();
        seconds = asked;
      } catch (error) {
        if (request.signal.aborted || !repeatable) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
    return send(request);
  };
}

/** The request, with an idempotency key if the operation takes one, and whether it may be repeated. */
async function prepare(request: Request, prefix: string): Promise<[Request, boolean]> {
  const path = new URL(request.url).pathname;
  const policy = policyOf(request.method, path.startsWith(prefix) ? path.slice(prefix.length) : path);
  if (policy === "idempotencyKey" && !request.headers.has(keyHeader)) {
    const headers = new Headers(request.headers);
    headers.set(keyHeader, crypto.randomUUID());
    return [new Request(request, { headers }), true];
  }
  return [request, policy === "safe" || policy === "idempotencyKey" || (policy === "version" && (await hasVersion(request)))];
}

/** The `x-retry-policy` of the operation at a path; `never` if there is no such operation. */
export function policyOf(method: string, path: string): string {
  const segments = path.replace(/^\/+|\/+$/g, "").split("/");
  const matching = policies
    .map(([declaredMethod, template, policy]) => ({ declaredMethod, parts: template.slice(1).split("/"), policy }))
    .filter(({ declaredMethod, parts }) => declaredMethod === method && parts.length === segments.length)
    .filter(({ parts }) => parts.every((part, index) => part.startsWith("{") || part === segments[index]));
  // A literal path comes before one with a parameter in the same place.
  const order = ({ parts }: { parts: string[] }) => parts.map((part) => (part.startsWith("{") ? "1" : "0")).join("");
  return matching.sort((left, right) => order(left).localeCompare(order(right)))[0]?.policy ?? "never";
}

/**
 * Seconds to wait before the next attempt, or undefined if the response is final. `wait` is used without Retry-After.
 * `repeatable`: the policy of the operation allows to repeat the request, whatever became of it.
 */
async function waitBeforeRepeating(
  request: Request,
  response: Response,
  wait: number,
  repeatable: boolean,
): Promise<number | undefined> {
  const mayRepeat = repeatable
    ? repeatableStatuses.has(response.status) || (await isStillRunning(request, response))
    : await hasChangedNothing(response);
  if (!mayRepeat) return undefined;
  const asked = response.headers.get("Retry-After") ?? "";
  if (/^\d+$/.test(asked)) return Number(asked);
  const at = Date.parse(asked);
  return Number.isNaN(at) ? wait : Math.max(0, (at - Date.now()) / 1000);
}

/** Whether the service says that it could not begin with the request. */
async function hasChangedNothing(response: Response): Promise<boolean> {
  if (response.status !== 503 || !isJson(response)) return false;
  return field(await response.clone().text(), "code") === "UNAVAILABLE";
}

/** Whether an earlier attempt with the same idempotency key has not ended yet. */
async function isStillRunning(request: Request, response: Response): Promise<boolean> {
  if (response.status !== 409 || !request.headers.has(keyHeader) || !isJson(response)) return false;
  return field(await response.clone().text(), "code") === "IDEMPOTENCY_KEY_IN_USE";
}

/** Whether the JSON body has the version that the change is based on. */
async function hasVersion(request: Request): Promise<boolean> {
  return isJson(request) && typeof field(await request.clone().text(), "version") === "number";
}

/** The response, with a JSON body already received: a connection that is cut in it counts as a failed attempt. */
async function readJson(response: Response): Promise<Response> {
  if (!isJson(response)) return response;
  const { status, statusText, headers } = response;
  return new Response(await response.arrayBuffer(), { status, statusText, headers });
}

function isJson(message: Request | Response): boolean {
  return (message.headers.get("Content-Type") ?? "").startsWith("application/json");
}

function field(text: string, name: string): unknown {
  try {
    return (JSON.parse(text) as Record<string, unknown> | null)?.[name];
  } catch {
    return undefined;
  }
}
