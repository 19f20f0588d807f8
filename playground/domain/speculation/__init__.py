"""What speculation buys in theory, and predictions from what was measured."""
