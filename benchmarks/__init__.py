"""The benchmarks: the service and bare handlers on the same database, every figure a ratio measured in one run."""
