"""Engines other than vLLM that the playground starts as sides: one file for each, and their table."""
