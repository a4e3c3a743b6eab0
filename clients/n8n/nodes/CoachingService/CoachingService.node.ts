import type { INodeType, INodeTypeDescription } from "n8n-workflow";
import { NodeConnectionTypes } from "n8n-workflow";

import { baseUrl, searchClients } from "./requests";
import { clientProperties } from "./resources/client";
import { messageProperties } from "./resources/message";
import { metricProperties } from "./resources/metric";
import { workoutProperties } from "./resources/workout";

export class CoachingService implements INodeType {
  description: INodeTypeDescription = {
    displayName: "Coaching Service",
    name: "coachingService",
    icon: { light: "file:coachingService.svg", dark: "file:coachingService.dark.svg" },
    group: ["transform"],
    version: 1,
    subtitle: '={{$parameter["operation"] + ": " + $parameter["resource"]}}',
    description: "Read and change clients, workouts, messages and metrics",
    defaults: { name: "Coaching Service" },
    usableAsTool: true,
    inputs: [NodeConnectionTypes.Main],
    outputs: [NodeConnectionTypes.Main],
    credentials: [{ name: "coachingServiceApi", required: true }],
    requestDefaults: { baseURL: baseUrl, headers: { Accept: "application/json" } },
    properties: [
      {
        displayName: "Resource",
        name: "resource",
        type: "options",
        noDataExpression: true,
        options: [
          { name: "Client", value: "client" },
          { name: "Message", value: "message" },
          { name: "Metric", value: "metric" },
          { name: "Workout", value: "workout" },
        ],
        default: "client",
      },
      ...clientProperties,
      ...messageProperties,
      ...metricProperties,
      ...workoutProperties,
    ],
  };

  methods = { listSearch: { searchClients } };
}
