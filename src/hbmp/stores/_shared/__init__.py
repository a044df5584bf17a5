"""Parts that several files of this folder share; not listed by the catalog."""
