"""Declaration and serving of REST routes, with the OpenAPI document that describes them."""
