import { Webhook, WebhookVerificationError } from "standardwebhooks";

export { WebhookVerificationError };

/** An event as `GET /coach/events` lists it: what happened, when and by whom. `data` depends on `type`. */
export interface WebhookEvent {
  id: string;
  seq: number;
  type: string;
  createdAt: string;
  customerId: string | null;
  actor: { type: string; _id: string | null };
  data: Record<string, unknown>;
}

/**
 * The event of a message (Standard Webhooks). Throws WebhookVerificationError if it is not from the service, or is too old.
 * `secret` begins with `whsec_`; `body` is the text that was received, not parsed and written again. The message arrives more
 * than once if it was not accepted in time: store the header `webhook-id` of what you have processed.
 */
export function verifyWebhook(secret: string, body: string, headers: Headers | Record<string, string>): WebhookEvent {
  const entries = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const lowered = Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
  return new Webhook(secret).verify(body, lowered) as WebhookEvent;
}
