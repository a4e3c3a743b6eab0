"""MongoDB access. Apart from stores, only this package imports the driver."""
