"""What the user specifies: settings, workload, measurement."""
