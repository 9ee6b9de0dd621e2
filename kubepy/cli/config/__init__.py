"""``kubepy config``: contexts, and the commands that choose one."""
