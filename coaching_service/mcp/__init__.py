"""The MCP endpoint for assistants: the Model Context Protocol over stateless streamable HTTP."""
