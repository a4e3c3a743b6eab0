"""Sessions: signing up, in and out; passwords; who a bearer is."""
