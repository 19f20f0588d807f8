"""What serves the sides of a run: where each runs, whether it fits, its start, and what is asked of it then."""
