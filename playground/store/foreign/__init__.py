"""Results of other tools, read as runs: `vllm bench serve` and GuideLLM."""
