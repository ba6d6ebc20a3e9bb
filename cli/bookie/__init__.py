"""`interpulse bookie`: a storage node, and its work as one of several."""
