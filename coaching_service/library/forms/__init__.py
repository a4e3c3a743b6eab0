"""Forms: questions that a company asks its clients."""
