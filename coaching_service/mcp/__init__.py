"""The door for assistants: the Model Context Protocol over stateless Streamable HTTP."""
