"""What is asked of the sides after the last round. Nothing here is timed."""
