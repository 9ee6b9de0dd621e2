"""What the server fills in where an object says nothing (``pkg/apis/*/v1/defaults.go``).

Each function changes the object it is given, which has been decoded already: zero values of fields that Go leaves out
are absent. A value of the wrong kind has been refused before.
"""
