"""Companies, coaches, clients and how they sign in."""
