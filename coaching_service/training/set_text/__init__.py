"""Sets as text, such as `4x8-10 @60kg rest 90s RPE8`: one grammar for reading and writing (docs/assistants.md)."""
