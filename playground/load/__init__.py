"""Sending a workload and stamping what comes back, in a process of its own."""
