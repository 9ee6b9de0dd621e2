"""Values that fields hold, and Go's ways of reading and writing them: quantities, schedules, hashes, structs."""
