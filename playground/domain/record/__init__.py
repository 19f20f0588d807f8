"""What happened: traces, counters, runs, and the figures that follow from them."""
