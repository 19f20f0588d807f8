"""Models: a name -> a folder that an engine can open, and what can be read of it."""
