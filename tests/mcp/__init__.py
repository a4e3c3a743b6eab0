"""The MCP endpoint and OAuth."""
