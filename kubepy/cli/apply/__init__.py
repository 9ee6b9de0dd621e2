"""``kubepy apply``: on the client by three-way merge, or on the server; and the commands for what was applied last."""
