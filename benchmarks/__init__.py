"""The benchmarks: the service beside bare handlers on the same database, every figure a ratio measured in one run."""
