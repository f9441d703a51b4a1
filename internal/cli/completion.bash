# The words of the line as they were typed. The package bash-completion has a
# better one; without it this one does. It is called for the variables cur,
# prev, words and cword of its caller, and a word goes on over = and :.
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        local rest=$COMP_LINE piece before="" i
        words=() cword=0
        for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
            piece=${COMP_WORDS[i]}
            if [[ $rest != [[:blank:]]* && ${#words[@]} -gt 0 && ($piece == [=:]* || $before == *[=:]) ]]; then
                words[${#words[@]} - 1]+=$piece
            else
                words[${#words[@]}]=$piece
            fi
            rest=${rest#"${rest%%[![:blank:]]*}"}
            rest=${rest#"$piece"}
            before=$piece
            if ((i == COMP_CWORD)); then
                cword=$((${#words[@]} - 1))
            fi
        done
        cur=${words[cword]} prev=""
        if ((cword > 0)); then
            prev=${words[cword - 1]}
        fi
    }
fi

