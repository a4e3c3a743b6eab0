"""What connects a company with other systems: export, import, sandbox."""
