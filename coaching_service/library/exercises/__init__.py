"""The exercise library: shared exercises and a company's own."""
