"""MongoDB: the only folder of the core that names the driver."""
