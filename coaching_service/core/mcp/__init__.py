"""What a tool for assistants is declared with; knows no protocol."""
