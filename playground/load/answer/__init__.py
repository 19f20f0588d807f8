"""What a response says: bytes with their times in, token-bearing deltas out."""
