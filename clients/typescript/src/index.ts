// Client library of the coaching service. The operations (`listCustomers`, ...) and types (`Customer`, ...) are generated from
// the API document.

export { connect, type Connection } from "./connection.js";
export { pages, walk, type Page } from "./lists.js";
export { defaultRetries, policyOf, withRetries, type Retries } from "./retries.js";
export { verifyWebhook, WebhookVerificationError, type WebhookEvent } from "./webhooks.js";
export type { Client } from "./generated/client/index.js";
export * from "./generated/index.js";
