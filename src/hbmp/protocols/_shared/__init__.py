"""Helpers shared by the protocols; the catalog does not list them."""
