"""Order of keys and of chunked messages: which consumer each key and each chunk belongs to."""
