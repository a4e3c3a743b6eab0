import type { INodeProperties } from "n8n-workflow";

import { clientOf, docs, inBody, limitOf, sendOnce, shownFor } from "../requests";

const messages = '=/coach/customers/{{$parameter["clientId"]}}/messages';
const message = `${messages}/{{$parameter["messageId"]}}`;

export const messageProperties: INodeProperties[] = [
  {
    displayName: "Operation",
    name: "operation",
    type: "options",
    noDataExpression: true,
    default: "create",
    displayOptions: { show: { resource: ["message"] } },
    options: [
      {
        name: "Create",
        value: "create",
        description: "Send a message to a client",
        action: "Send a message",
        routing: { request: { method: "POST", url: messages }, send: { preSend: [sendOnce] } },
      },
      {
        name: "Get",
        value: "get",
        action: "Get a message",
        routing: { request: { method: "GET", url: message } },
      },
      {
        name: "Get Many",
        value: "getAll",
        description: "Get the messages with a client, newest first",
        action: "Get many messages",
        routing: { request: { method: "GET", url: messages }, output: docs },
      },
      {
        name: "Update",
        value: "update",
        description: "Change the text of a message that the same key has sent",
        action: "Update a message",
        routing: { request: { method: "PATCH", url: message } },
      },
    ],
  },
  clientOf("message", "create", "get", "getAll", "update"),
  {
    displayName: "Message ID",
    name: "messageId",
    type: "string",
    default: "",
    required: true,
    displayOptions: shownFor("message", "get", "update"),
  },
  {
    displayName: "Text",
    name: "text",
    type: "string",
    typeOptions: { rows: 4 },
    default: "",
    required: true,
    description: "Plain text of up to 5,000 characters",
    displayOptions: shownFor("message", "create", "update"),
    routing: inBody("text"),
  },
  ...limitOf("message", "limit"),
];
