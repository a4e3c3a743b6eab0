"""The company: its name, time zone and unit of load."""
