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
compdef _kubepy kubepy
