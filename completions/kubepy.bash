# bash completion for kubepy
_kubepy() {
    local IFS=$'\n'
    COMPREPLY=()
    local cur="${COMP_WORDS[COMP_CWORD]}" line="${COMP_LINE:0:COMP_POINT}"
    local candidates
    candidates="$(kubepy __complete "$line" 2>/dev/null)"
    if [ -z "$candidates" ]; then
        compopt -o default 2>/dev/null
        return
    fi
    # A word with "=" or ":" in it is several words to bash: complete the last of them.
    local word="${line##*[[:space:]]}"
    local prefix="${word%"$cur"}"
    case "$cur" in = | :) prefix="$word" cur="" ;; esac
    COMPREPLY=($(compgen -W "$candidates" -- "$prefix$cur"))
    COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
    case "${COMPREPLY[*]}" in */ | *= | *, | *:) compopt -o nospace 2>/dev/null ;; esac
}
__start_kubepy() { _kubepy "$@"; }  # for aliases: complete -F __start_kubepy k
complete -F _kubepy kubepy
