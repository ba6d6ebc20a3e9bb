"""The admin REST and HTTP lookup: Apache's routes and JSON on the broker's service."""
