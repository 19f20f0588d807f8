"""What speculation gains in theory, and predictions from measurements."""
