"""What an engine's log says of a failure: how far its start got, what went wrong, and what to change."""
