"""An engine's log -> how far its start got, what went wrong, and what to change."""
