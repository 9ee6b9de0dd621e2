"""CustomResourceDefinitions: names and versions, and the schemas of their objects with rules and defaults."""
