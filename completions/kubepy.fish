# fish completion for kubepy
function __kubepy_complete
    kubepy __complete (commandline -cp) 2>/dev/null
end
complete -c kubepy -e
complete -c kubepy -f -n 'test (count (__kubepy_complete)) -gt 0' -a '(__kubepy_complete)'
