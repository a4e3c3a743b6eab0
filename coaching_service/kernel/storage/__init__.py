"""MongoDB: the only folder of the kernel that names the driver."""
