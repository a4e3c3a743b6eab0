"""What happens to clients as a whole: erasure, export, bulk changes."""
