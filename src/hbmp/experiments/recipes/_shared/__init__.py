"""Helpers shared by the recipes; the catalog does not list them."""
