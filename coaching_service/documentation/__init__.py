"""What operators and developers read without a credential: health, metrics, the API document and the guides."""
