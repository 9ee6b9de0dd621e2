"""Label selectors, field selectors, and what they select."""
