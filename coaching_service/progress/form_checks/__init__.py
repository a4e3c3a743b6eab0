"""Videos and pictures of sets: what clients send, and the comments of coaches on them."""
