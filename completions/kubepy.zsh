#compdef kubepy
_kubepy() {
    local -a candidates
    candidates=("${(@f)$(kubepy __complete "${LBUFFER}" 2>/dev/null)}")
    if [[ -z "$candidates" ]]; then
        _files
        return
    fi
    # What ends in "=" or "/" goes on.
    compadd -Q -S '' -- ${(M)candidates:#*[=/,:]}
    compadd -Q -- ${candidates:#*[=/,:]}
}
if [ "$funcstack[1]" = "_kubepy" ]; then
    _kubepy  # zsh has just loaded this file, to complete a word
else
    compdef _kubepy kubepy
fi
