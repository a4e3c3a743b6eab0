import { createClient, type Client } from "./generated/client/index.js";
import { defaultRetries, withRetries, type Retries } from "./retries.js";

/** Where the service is, and the credential to send: either an API key, or the access token of a session. */
export interface Connection {
  baseUrl: string;
  apiKey?: string;
  accessToken?: string;
  retries?: Partial<Retries>;
  /** Sends a request; the `fetch` of the platform by default. */
  fetch?: (request: Request) => Promise<Response>;
}

/**
 * A client with retries and idempotency keys. Operations take it as `client`, and throw what the service responds instead of
 * the expected result if they are called with `throwOnError: true`.
 */
export function connect(connection: Connection): Client {
  const { apiKey, accessToken, fetch = globalThis.fetch } = connection;
  if ((apiKey === undefined) === (accessToken === undefined)) throw new Error("give either an apiKey or an accessToken");
  const baseUrl = connection.baseUrl.replace(/\/+$/, "");
  const headers: Record<string, string> = apiKey ? { "X-API-Key": apiKey } : { Authorization: `Bearer ${accessToken}` };
  const prefix = new URL(baseUrl).pathname.replace(/\/+$/, "");
  const repeating = withRetries((request) => fetch(request), { ...defaultRetries, ...connection.retries }, prefix);
  return createClient({ baseUrl, headers, fetch: (input, init) => repeating(new Request(input, init)) });
}
