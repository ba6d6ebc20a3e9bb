"""Load: who is asked to serve a bundle, what is moved from a broker that does too much, what is cut in two."""
