"""Web Push: the devices of coaches and clients, the keys of the service, and sending."""
