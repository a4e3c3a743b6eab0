"""REST: the declaration of a route, and what is made from it (serving, OpenAPI)."""
