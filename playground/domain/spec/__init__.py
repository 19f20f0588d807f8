"""What is asked for: settings, workload, measurement."""
