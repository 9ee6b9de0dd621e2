"""Shell completion: shells ask ``kubepy __complete LINE`` what the last word of a line could become.

:mod:`scripts` is the code for the shells, :mod:`candidates` reads the line, :mod:`words` knows what each command's
words and flags can be, :mod:`objects` looks into the state folder. Nothing here fails: what can't be completed gives
nothing.
"""
