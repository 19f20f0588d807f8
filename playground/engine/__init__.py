"""Running vLLM servers: which runtime, which command, start, watch, stop."""
