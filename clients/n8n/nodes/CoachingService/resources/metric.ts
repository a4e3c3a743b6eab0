import type { INodeProperties } from "n8n-workflow";

import { clientOf, inBody, sendOnce, shownFor } from "../requests";

const client = '=/coach/customers/{{$parameter["clientId"]}}';

export const metricProperties: INodeProperties[] = [
  {
    displayName: "Operation",
    name: "operation",
    type: "options",
    noDataExpression: true,
    default: "upsert",
    displayOptions: { show: { resource: ["metric"] } },
    options: [
      {
        name: "Create or Update",
        value: "upsert",
        description: "Create a new record, or update the current one if it already exists (upsert)",
        action: "Record a value",
        routing: { request: { method: "POST", url: `${client}/metric-values` }, send: { preSend: [sendOnce] } },
      },
      {
        name: "Get",
        value: "get",
        description: "Get the values of one metric, by date",
        action: "Get the values of a metric",
        routing: {
          request: {
            method: "GET",
            url: `${client}/metrics-sets/{{$parameter["metricsSetId"]}}/metrics/{{$parameter["metricId"]}}/history`,
          },
        },
      },
      {
        name: "Get Many",
        value: "getAll",
        description: "Get the sets of metrics of a client, with the first and the last value of each",
        action: "Get many metrics",
        routing: { request: { method: "GET", url: `${client}/metrics-sets` } },
      },
    ],
  },
  clientOf("metric", "get", "getAll", "upsert"),
  {
    displayName: "Metric Set ID",
    name: "metricsSetId",
    type: "string",
    default: "",
    required: true,
    displayOptions: shownFor("metric", "get"),
  },
  {
    displayName: "Metric ID",
    name: "metricId",
    type: "string",
    default: "",
    required: true,
    displayOptions: shownFor("metric", "get"),
  },
  {
    displayName: "Metric ID",
    name: "metricId",
    type: "string",
    default: "",
    required: true,
    displayOptions: shownFor("metric", "upsert"),
    routing: inBody("values[0].metricId"),
  },
  {
    displayName: "Date",
    name: "date",
    type: "string",
    default: "={{ $now.toISODate() }}",
    required: true,
    placeholder: "e.g. 2026-03-02",
    description: "The date, in the time zone of the client",
    displayOptions: shownFor("metric", "upsert"),
    routing: inBody("values[0].date"),
  },
  {
    displayName: "Value",
    name: "value",
    type: "number",
    default: 0,
    required: true,
    description: "The value, in the unit of the metric",
    displayOptions: shownFor("metric", "upsert"),
    routing: inBody("values[0].value"),
  },
];
