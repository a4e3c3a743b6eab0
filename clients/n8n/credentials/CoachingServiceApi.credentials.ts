import type { IAuthenticateGeneric, ICredentialTestRequest, ICredentialType, Icon, INodeProperties } from "n8n-workflow";

export class CoachingServiceApi implements ICredentialType {
  name = "coachingServiceApi";

  displayName = "Coaching Service API";

  icon: Icon = {
    light: "file:../nodes/CoachingService/coachingService.svg",
    dark: "file:../nodes/CoachingService/coachingService.dark.svg",
  };

  documentationUrl = "https://git.example.com/coaching-service";

  properties: INodeProperties[] = [
    {
      displayName: "Address",
      name: "baseUrl",
      type: "string",
      default: "",
      required: true,
      placeholder: "https://coaching.example.com",
      description: "The address of your coaching service",
    },
    {
      displayName: "API Key",
      name: "apiKey",
      type: "string",
      typeOptions: { password: true },
      default: "",
      required: true,
      description: "A key of a coach, or a service key of the company; triggers need its permission for webhooks",
    },
  ];

  authenticate: IAuthenticateGeneric = {
    type: "generic",
    properties: { headers: { "X-API-Key": "={{$credentials.apiKey}}" } },
  };

  test: ICredentialTestRequest = {
    request: { baseURL: '={{$credentials.baseUrl.replace(/\\/+$/, "")}}', url: "/me" },
  };
}
