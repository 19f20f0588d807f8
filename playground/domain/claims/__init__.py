"""Practitioners' claims about vLLM's settings, and whether a measurement confirms them."""
