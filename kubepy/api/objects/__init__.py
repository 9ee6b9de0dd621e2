"""What objects mean: plain functions over the dicts of pods, nodes, volumes and the metadata of all kinds."""
