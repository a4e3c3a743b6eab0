"""The company account: name, time zone and load unit."""
