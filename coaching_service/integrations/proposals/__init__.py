"""Calls of tools by assistants: carried out at once (`tool_calls`), or proposed to a coach, who decides."""
