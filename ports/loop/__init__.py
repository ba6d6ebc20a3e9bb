"""Work on the event loop: turns, slices, promises, and work side by side."""
