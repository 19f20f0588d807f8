"""Shell text -> the commands in it, and the words that one of them gives to vLLM. Nothing is run."""
