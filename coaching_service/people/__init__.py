"""Companies, coaches, credentials and clients."""
