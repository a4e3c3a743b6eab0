import js from "@eslint/js";
import { n8nCommunityNodesPlugin } from "@n8n/eslint-plugin-community-nodes";
import nodesBase from "eslint-plugin-n8n-nodes-base";
import tseslint from "typescript-eslint";

const rulesOf = (name) => ({ plugins: { "n8n-nodes-base": nodesBase }, rules: nodesBase.configs[name].rules });

// All rules that n8n recommends for nodes of others, but those with a reason below.
export default tseslint.config(
  { ignores: ["dist", "node_modules", "*.mjs"] },
  {
    files: ["**/*.ts"],
    extends: [js.configs.recommended, tseslint.configs.recommended, n8nCommunityNodesPlugin.configs.recommended],
  },
  {
    files: ["package.json"],
    extends: [n8nCommunityNodesPlugin.configs.recommended, rulesOf("community")],
    languageOptions: { parser: tseslint.parser, parserOptions: { extraFileExtensions: [".json"] } },
    // The license is that of the whole repository; n8n's list of verified nodes would require MIT.
    rules: { "n8n-nodes-base/community-package-json-license-not-default": "off" },
  },
  {
    files: ["credentials/**/*.ts"],
    extends: [rulesOf("credentials")],
    // This rule is for n8n's own nodes, whose documentation is on its site.
    rules: { "n8n-nodes-base/cred-class-field-documentation-url-miscased": "off" },
  },
  {
    files: ["nodes/**/*.ts"],
    extends: [rulesOf("nodes")],
    rules: {
      // They know inputs and outputs as texts only, not n8n's constants for them.
      "n8n-nodes-base/node-class-description-inputs-wrong-regular-node": "off",
      "n8n-nodes-base/node-class-description-outputs-wrong": "off",
      // The service has a largest page.
      "n8n-nodes-base/node-param-type-options-max-value-present": "off",
    },
  },
);
