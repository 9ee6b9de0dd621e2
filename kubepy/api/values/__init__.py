"""Values of fields, read and written as Go does it: quantities, names, cron schedules, numbers,
regular expressions.

``goformat`` prints values as Go's ``fmt`` and ``encoding/json`` do.
"""
