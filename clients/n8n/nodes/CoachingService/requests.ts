import { createHash } from "node:crypto";

import type {
  IDataObject,
  IExecuteSingleFunctions,
  IHttpRequestOptions,
  ILoadOptionsFunctions,
  INodeListSearchResult,
  INodeProperties,
  INodePropertyRouting,
  IN8nRequestOperations,
} from "n8n-workflow";

export const credential = "coachingServiceApi";
export const baseUrl = '={{$credentials.baseUrl.replace(/\\/+$/, "")}}';

/** A field of the body that is sent under its own name. */
export const inBody = (property: string, value?: string): INodePropertyRouting => ({
  send: { type: "body", property, ...(value === undefined ? {} : { value }) },
});

/** A parameter of the query. */
export const inQuery = (property: string): INodePropertyRouting => ({ send: { type: "query", property } });

/** A list whose entries become items: under `docs`, in parts. */
export const docs: INodePropertyRouting["output"] = {
  postReceive: [{ type: "rootProperty", properties: { property: "docs" } }],
};

/** All parts of a list: the next one begins at the cursor of the one before. */
const allParts: IN8nRequestOperations["pagination"] = {
  type: "generic",
  properties: {
    continue: "={{ !!$response.body?.nextCursor }}",
    // It replaces the query of the request, which is kept therefore.
    request: { qs: "={{ { ...$request.qs, after: $response.body?.nextCursor } }}" as unknown as IDataObject },
  },
};

/**
 * Give a request that creates something a key, which is the same when n8n repeats the node after a failure: the
 * service then creates it once.
 */
export async function sendOnce(
  this: IExecuteSingleFunctions,
  options: IHttpRequestOptions,
): Promise<IHttpRequestOptions> {
  const parts = [this.getExecutionId(), this.getNode().id, this.getItemIndex(), options.url, options.body];
  const key = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  return { ...options, headers: { ...options.headers, "Idempotency-Key": key } };
}

/** The clients for the list of a field, by part of a name. */
export async function searchClients(
  this: ILoadOptionsFunctions,
  filter?: string,
  after?: string,
): Promise<INodeListSearchResult> {
  const credentials = await this.getCredentials<{ baseUrl: string }>(credential);
  const page = (await this.helpers.httpRequestWithAuthentication.call(this, credential, {
    baseURL: credentials.baseUrl.replace(/\/+$/, ""),
    url: "/coach/customers",
    qs: { archived: false, pageSize: 50, pageNum: 1, fields: "name,surname", contains: filter, after },
    json: true,
  })) as { docs: Array<{ _id: string; name: string; surname: string | null }>; nextCursor: string | null };
  return {
    results: page.docs.map(({ _id, name, surname }) => ({ name: [name, surname].filter(Boolean).join(" "), value: _id })),
    paginationToken: page.nextCursor ?? undefined,
  };
}

/** Where a parameter is shown. */
export const shownFor = (resource: string, ...operations: string[]): INodeProperties["displayOptions"] => ({
  show: { resource: [resource], operation: operations },
});

/** The client that an operation is about. */
export const clientOf = (resource: string, ...operations: string[]): INodeProperties => ({
  displayName: "Client",
  name: "clientId",
  type: "resourceLocator",
  default: { mode: "list", value: "" },
  required: true,
  displayOptions: shownFor(resource, ...operations),
  modes: [
    {
      displayName: "From List",
      name: "list",
      type: "list",
      typeOptions: { searchListMethod: "searchClients", searchable: true },
    },
    { displayName: "By ID", name: "id", type: "string", placeholder: "e.g. 66f0c0ffee0000000000abcd" },
  ],
});

/** Whether all parts of a list are read, and how many entries otherwise. */
export const limitOf = (resource: string, property: string): INodeProperties[] => [
  {
    displayName: "Return All",
    name: "returnAll",
    type: "boolean",
    default: false,
    description: "Whether to return all results or only up to a given limit",
    displayOptions: shownFor(resource, "getAll"),
    routing: {
      send: { paginate: "={{ $value }}", type: "query", property, value: "50" },
      operations: { pagination: allParts },
    },
  },
  {
    displayName: "Limit",
    name: "limit",
    type: "number",
    typeOptions: { minValue: 1, maxValue: 50 },
    default: 50,
    description: "Max number of results to return",
    displayOptions: { show: { resource: [resource], operation: ["getAll"], returnAll: [false] } },
    routing: inQuery(property),
  },
];
