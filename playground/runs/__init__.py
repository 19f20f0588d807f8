"""What a person starts: races, measured runs, sweeps and the checks around them."""
