"""What more than one tab uses."""
