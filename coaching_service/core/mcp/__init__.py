"""Declaration of tools for assistants, independent of the protocol."""
