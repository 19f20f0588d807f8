"""How the page is served: its address, who is let in, and the limits on connections and requests."""
