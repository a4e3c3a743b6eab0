// Runs the built nodes of clients/n8n with n8n's own engine (n8n-core): one JSON command a line, one JSON answer a line.
//
// {"run": "execute", "parameters": {}, "items": [{}]}   the node of actions; the answer are the items of its output
// {"run": "test"}                                       the test of the credentials
// {"run": "search", "filter": "Ana", "after": "..."}    the list of clients of a field
// {"run": "types"}                                      the events that the trigger offers
// {"run": "create", "parameters": {}, "mode": "manual"} a method of the trigger's webhook: checkExists, create, delete
// {"run": "webhook", "headers": {}, "body": "..."}      a received message; "statusCode" if it was refused
//
// CREDENTIALS is the JSON of {baseUrl, apiKey}, WEBHOOKS the address under which n8n would receive webhooks.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(import.meta.url);
require("reflect-metadata");
const { ExecuteContext, HookContext, LoadOptionsContext, RoutingNode, WebhookContext } = require("n8n-core");
const { Workflow, createRunExecutionData } = require("n8n-workflow");
const load = (path, name) => new (require(`../../../clients/n8n/dist/${path}.js`)[name])();
const credentialType = load("credentials/CoachingServiceApi.credentials", "CoachingServiceApi");
const actions = load("nodes/CoachingService/CoachingService.node", "CoachingService");
const trigger = load("nodes/CoachingServiceTrigger/CoachingServiceTrigger.node", "CoachingServiceTrigger");
const tester = {
  description: {
    ...actions.description,
    requestDefaults: {},
    properties: [
      { displayName: "", name: "test", type: "string", default: "", routing: { request: credentialType.test.request } },
    ],
  },
};
const types = { actions, trigger, tester };
const credentials = JSON.parse(process.env.CREDENTIALS);

// What the program of n8n adds to its engine: it stores credentials, and applies them as their type declares.
const credentialsHelper = {
  getParentTypes: () => [],
  isCredentialUsableByNode: () => true,
  getDecrypted: async () => credentials,
  getCredentialsProperties: () => credentialType.properties,
  preAuthentication: async () => undefined,
  runPreAuthentication: async () => undefined,
  authenticate: async (data, _type, options, workflow, node) => {
    const headers = credentialType.authenticate.properties.headers;
    const keys = { $credentials: data };
    const filled = Object.entries(headers).map(([name, value]) => [
      name,
      workflow.expression.getSimpleParameterValue(node, value, "internal", keys),
    ]);
    return { ...options, headers: { ...options.headers, ...Object.fromEntries(filled) } };
  },
};
const additionalData = {
  credentialsHelper,
  executionId: "1",
  webhookBaseUrl: process.env.WEBHOOKS,
  webhookTestBaseUrl: process.env.WEBHOOKS,
  webhookWaitingBaseUrl: process.env.WEBHOOKS,
  formWaitingBaseUrl: process.env.WEBHOOKS,
  variables: {},
};
const staticData = {};

function workflowOf(type, parameters) {
  const node = {
    id: `node-${type}`,
    webhookId: "path-of-the-webhook",
    name: type,
    type,
    typeVersion: 1,
    position: [0, 0],
    parameters,
    credentials: { coachingServiceApi: { id: "1", name: "Coaching" } },
  };
  const nodeTypes = { getByNameAndVersion: (name) => types[name], getByName: (name) => types[name] };
  const given = { id: "1", name: "Test", nodes: [node], connections: {}, active: false, nodeTypes, staticData };
  const workflow = new Workflow(given);
  return { workflow, node: workflow.getNode(type) };
}

async function execute(type, { parameters = {}, items = [{}] }) {
  const { workflow, node } = workflowOf(type, parameters);
  const input = items.map((json) => ({ json }));
  const data = { main: [input] };
  const executeData = { node, data, source: null };
  const given = [workflow, node, additionalData, "manual", createRunExecutionData({}), 0, input, data, executeData, []];
  const [output] = await new RoutingNode(new ExecuteContext(...given), types[type]).runNode();
  return output.map((item) => item.json);
}

function optionsContext(type) {
  const { workflow, node } = workflowOf(type, {});
  return new LoadOptionsContext(workflow, node, additionalData, "");
}

const commands = {
  execute: (command) => execute("actions", command),
  test: () => execute("tester", {}),
  search: ({ filter, after }) => actions.methods.listSearch.searchClients.call(optionsContext("actions"), filter, after),
  types: () => trigger.methods.loadOptions.getEventTypes.call(optionsContext("trigger")),
  webhook: async ({ headers, body }) => {
    const { workflow, node } = workflowOf("trigger", {});
    const answer = {};
    const httpResponse = { status: (code) => ((answer.statusCode = code), httpResponse), json: () => httpResponse };
    const httpRequest = { headers, body: JSON.parse(body), rawBody: Buffer.from(body), params: {}, query: {} };
    const data = { ...additionalData, httpRequest, httpResponse };
    const context = new WebhookContext(workflow, node, data, "webhook", { webhookDescription: {} }, [], null);
    const { workflowData } = await trigger.webhook.call(context);
    return { ...answer, items: workflowData?.[0].map((item) => item.json) ?? [] };
  },
};
for (const method of ["checkExists", "create", "delete"]) {
  commands[method] = async ({ parameters = {}, mode = "trigger" }) => {
    const { workflow, node } = workflowOf("trigger", parameters);
    const context = new HookContext(workflow, node, additionalData, mode, mode === "manual" ? "manual" : "activate");
    return await trigger.webhookMethods.default[method].call(context);
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    answer = { result: await commands[command.run](command) };
  } catch (error) {
    answer = { error: { message: error.message, httpCode: error.httpCode, description: error.description } };
    if (!error.httpCode) answer.error.stack = error.stack;
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
