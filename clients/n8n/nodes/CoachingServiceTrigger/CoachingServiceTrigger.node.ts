import { createHmac, timingSafeEqual } from "node:crypto";

import type {
  IDataObject,
  IHookFunctions,
  IHttpRequestMethods,
  ILoadOptionsFunctions,
  INodePropertyOptions,
  INodeType,
  INodeTypeDescription,
  IWebhookFunctions,
  IWebhookResponseData,
  JsonObject,
} from "n8n-workflow";
import { NodeApiError, NodeConnectionTypes } from "n8n-workflow";

import { credential } from "../CoachingService/requests";

type Webhook = { _id: string; url: string; types: string[]; isActive: boolean; secret?: string };

const LARGEST_AGE_SECONDS = 300;

async function call<Answer>(
  context: IHookFunctions | ILoadOptionsFunctions,
  method: IHttpRequestMethods,
  url: string,
  body?: IDataObject,
): Promise<Answer> {
  const credentials = await context.getCredentials<{ baseUrl: string }>(credential);
  const options = { method, baseURL: credentials.baseUrl.replace(/\/+$/, ""), url, body, json: true };
  return (await context.helpers.httpRequestWithAuthentication.call(context, credential, options)) as Answer;
}

/** Whether a message has a signature of the webhook's secret and is recent (Standard Webhooks). */
function isSigned(secret: string, headers: IDataObject, body: Buffer): boolean {
  const [id, timestamp, signatures] = ["id", "timestamp", "signature"].map((name) => String(headers[`webhook-${name}`]));
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= LARGEST_AGE_SECONDS)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  return signatures.split(" ").some((each) => {
    const given = Buffer.from(each.replace(/^v1,/, ""), "base64");
    return each.startsWith("v1,") && given.length === expected.length && timingSafeEqual(given, expected);
  });
}

async function deleteWebhook(context: IHookFunctions, id: string): Promise<void> {
  try {
    await call(context, "DELETE", `/coach/webhooks/${id}`);
  } catch (error) {
    const failure = new NodeApiError(context.getNode(), error as JsonObject);
    if (failure.httpCode !== "404") throw failure;
  }
}

export class CoachingServiceTrigger implements INodeType {
  description: INodeTypeDescription = {
    displayName: "Coaching Service Trigger",
    name: "coachingServiceTrigger",
    icon: { light: "file:coachingService.svg", dark: "file:coachingService.dark.svg" },
    group: ["trigger"],
    version: 1,
    subtitle: '={{$parameter["types"].join(", ")}}',
    description: "Start a workflow when something happens to clients, such as a finished workout",
    defaults: { name: "Coaching Service Trigger" },
    inputs: [],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: credential, required: true }],
    webhooks: [{ name: "default", httpMethod: "POST", responseMode: "onReceived", path: "webhook" }],
    properties: [
      {
        displayName: "Event Names or IDs",
        name: "types",
        type: "multiOptions",
        typeOptions: { loadOptionsMethod: "getEventTypes" },
        default: [],
        description:
          'The events that start the workflow; none for all. Choose from the list, or specify IDs using an <a href="https://docs.n8n.io/code/expressions/">expression</a>.',
      },
      {
        displayName: "Send a Sample when Testing",
        name: "sample",
        type: "boolean",
        default: true,
        description:
          "Whether a test of the workflow receives an invented event of the first chosen type at once, instead of waiting for a real one",
      },
    ],
  };

  methods = {
    loadOptions: {
      async getEventTypes(this: ILoadOptionsFunctions): Promise<INodePropertyOptions[]> {
        const samples = await call<Array<{ type: string }>>(this, "GET", "/coach/events/samples");
        return samples.map(({ type }) => ({ name: type, value: type }));
      },
    },
  };

  webhookMethods = {
    default: {
      async checkExists(this: IHookFunctions): Promise<boolean> {
        const { webhookId, secret } = this.getWorkflowStaticData("node");
        const types = this.getNodeParameter("types", []) as string[];
        const all = await call<Webhook[]>(this, "GET", "/coach/webhooks");
        const own = all.find((each) => each._id === webhookId && each.isActive);
        return (
          own !== undefined &&
          secret !== undefined &&
          own.url === this.getNodeWebhookUrl("default") &&
          own.types.length === types.length &&
          types.every((each) => own.types.includes(each))
        );
      },

      async create(this: IHookFunctions): Promise<boolean> {
        const url = this.getNodeWebhookUrl("default") as string;
        const types = this.getNodeParameter("types", []) as string[];
        // What an interrupted process of n8n has left behind: its secret is lost.
        for (const each of await call<Webhook[]>(this, "GET", "/coach/webhooks")) {
          if (each.url === url) await deleteWebhook(this, each._id);
        }
        const description = `n8n: ${this.getWorkflow().name ?? this.getWorkflow().id}`;
        const created = await call<Webhook>(this, "POST", "/coach/webhooks", { url, types, description });
        Object.assign(this.getWorkflowStaticData("node"), { webhookId: created._id, secret: created.secret });
        if (this.getMode() === "manual" && this.getNodeParameter("sample", true)) {
          const type = types[0] ?? "workout.completed";
          await call(this, "POST", `/coach/webhooks/${created._id}/test`, { type });
        }
        return true;
      },

      async delete(this: IHookFunctions): Promise<boolean> {
        const stored = this.getWorkflowStaticData("node");
        if (stored.webhookId !== undefined) await deleteWebhook(this, stored.webhookId as string);
        delete stored.webhookId;
        delete stored.secret;
        return true;
      },
    },
  };

  async webhook(this: IWebhookFunctions): Promise<IWebhookResponseData> {
    const { secret } = this.getWorkflowStaticData("node");
    const request = this.getRequestObject();
    if (typeof secret !== "string" || !isSigned(secret, this.getHeaderData() as IDataObject, request.rawBody)) {
      this.getResponseObject().status(401).json({ message: "The signature is not that of this webhook" });
      return { noWebhookResponse: true };
    }
    return { workflowData: [this.helpers.returnJsonArray(this.getBodyData())] };
  }
}
