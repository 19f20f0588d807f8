"""What practitioners claim of vLLM's settings, and whether a measurement bears it out."""
