"""Forms: questions a company asks its clients."""
