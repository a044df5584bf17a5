"""What every wing stands on: the catalog, files, labels, seeds, devices. Nothing here imports from above."""
