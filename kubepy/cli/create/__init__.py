"""``kubepy create``: from files, and the generators, which make an object from flags."""
