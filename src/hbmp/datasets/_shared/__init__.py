"""Helpers shared by the data sets; the catalog does not list them."""
