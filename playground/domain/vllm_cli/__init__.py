"""Pasted vLLM command lines and Python calls, and the names that settings used to have."""
