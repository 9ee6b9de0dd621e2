"""``kubepy completion``: the code that shells run. ``completions/`` keeps what it prints."""

from __future__ import annotations

from kubepy.cli.runtime.factory import Factory
from kubepy.cli.runtime.verbs import Invocation, verb
from kubepy.quoting import quote

BASH = """# bash completion for kubepy
_kubepy() {
    local IFS=$'\\n'
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
complete -F _kubepy kubepy
"""
ZSH = """#compdef kubepy
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
"""
FISH = """# fish completion for kubepy
function __kubepy_complete
    kubepy __complete (commandline -cp) 2>/dev/null
end
complete -c kubepy -e
complete -c kubepy -f -n 'test (count (__kubepy_complete)) -gt 0' -a '(__kubepy_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@verb("completion", "completion SHELL", examples="""
# In this shell
source <(kubepy completion bash)

# For fish
kubepy completion fish > ~/.config/fish/completions/kubepy.fish
""")
def completion(factory: Factory, given: Invocation) -> None:
    """Output shell completion code for the specified shell (bash, zsh, fish)."""
    if not given.args:
        given.usage_error("Shell not specified.")
    if len(given.args) > 1:
        given.usage_error("Too many arguments. Expected only the shell type.")
    shell = given.args[0]
    if shell not in SCRIPTS:
        given.usage_error(f"Unsupported shell type {quote(shell)}.")
    factory.print(SCRIPTS[shell], end="")
