"""When a client cannot train as planned: away, injured, ill, or limited."""
