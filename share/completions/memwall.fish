# fish completion for memwall; the commands and options are those of "memwall completions list"
set -g __memwall_commands
function __memwall_is -a name
    set -l words (commandline -opc)
    if test (count $words) -gt 1; and contains -- $words[2] $__memwall_commands
        test $words[2] = $name
        return
    end
    test $name = chat; and not __memwall_is_help
end
function __memwall_is_help
    set -l words (commandline -opc)
    test (count $words) -eq 2; and test $words[2] = help
end
function __memwall_is_first
    test (count (commandline -opc)) -eq 1
end
# command, option, letter, argument, group, help, values
for line in (memwall completions list 2>/dev/null)
    set -l row (string split \t -- $line)
    set -l args -c memwall -n "__memwall_is $row[1]"
    if test "$row[2]" = -
        set -ga __memwall_commands $row[1]
        complete -c memwall -n __memwall_is_first -a $row[1] -d $row[6]
        switch $row[7]
            case :model :models
                complete $args -a '(memwall list --names 2>/dev/null)'
            case '.*'
                complete $args -f -k -a "(__fish_complete_suffix $row[7])"
        end
        continue
    end
    set -a args -l (string sub -s 3 -- $row[2]) -d $row[6]
    test "$row[3]" != -; and set -a args -s $row[3]
    switch $row[7]
        case -
        case :none
            set -a args -x
        case :files
            set -a args -r -F
        case :models
            set -a args -x -k -a '(memwall list --names 2>/dev/null; __fish_complete_suffix .gguf)'
        case :themes
            set -a args -r -F -a '(memwall completions themes 2>/dev/null)'
        case :chats
            set -a args -x -k -a '(memwall completions chats 2>/dev/null)'
        case '*'
            set -a args -x -a $row[7]
    end
    complete $args
end
complete -c memwall -n __memwall_is_help -f -a "$__memwall_commands"
