"""The processes of a container in the model: a small shell, its programs, its files.

No process is started and no file of the machine is touched. ``machine`` has the processes of one
container; ``files`` is what they see; ``utilities`` are the programs beside the shell's own words;
``surroundings`` is the world around the container. Everything that must outlive a command has a
JSON form.
"""
