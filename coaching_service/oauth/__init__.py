"""The authorization server for assistants: OAuth 2.1 as MCP asks for it. Its pages are in web/."""
