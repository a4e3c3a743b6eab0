"""Long proofs with processes and databases that are killed: `scripts/test --proofs` runs them, and tests that are named."""
