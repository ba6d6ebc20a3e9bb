"""Parts that all routes of the admin REST share: endpoints, their dispatch, bodies, answers, the OpenAPI page."""
