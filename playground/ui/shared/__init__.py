"""Parts that several tabs use."""
