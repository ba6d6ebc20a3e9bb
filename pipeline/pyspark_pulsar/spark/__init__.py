"""The thin part that needs PySpark: sources and sinks of its Python Data Source API, over the pure parts and the client."""
