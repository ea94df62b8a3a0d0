# Completions of causeway for bash: source <(causeway completions bash)
_causeway() {
    local line=${COMP_LINE:0:COMP_POINT} words current prefix reply
    # bash cuts words at : and =, which stand in names of grants and in KEY=VALUE, and completes the last piece alone.
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[-1]}
    prefix=${current%"${current##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r -d $'\013' reply || [[ -n $reply ]]; do
        # Options are for who begins one.
        [[ $reply == -* && $current != -* ]] || COMPREPLY+=("${reply#"$prefix"}")
    done < <(_CLAP_IFS=$'\013' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) _CLAP_COMPLETE_COMP_TYPE=${COMP_TYPE:-9} \
        _CLAP_COMPLETE_SPACE=false CAUSEWAY_COMPLETE=bash "${words[0]}" -- "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} =~ [=/:]$ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -F _causeway causeway
