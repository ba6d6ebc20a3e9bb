"""Dead letter topics: their reading, their causes, and the way back."""
