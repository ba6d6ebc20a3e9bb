"""`interpulse broker`: a broker of a cluster, and the parts that a standalone has too."""
