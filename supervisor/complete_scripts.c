#include <string.h>

#include "complete.h"

/*
 * bash takes a line apart also at '=' and ':' and '@', of which none ends a word of ours: what stands
 * together is one word again. Of an answer it wants what is behind the last '=' or ':', but '@' with it.
 * The rest of a line that is a command of its own is completed as that, where the package bash-completion
 * knows how.
 */
static const char bash[] =
    "# bash completion for flowsup, from: flowsup completion bash\n"
    "_flowsup()\n{\n"
    "\tlocal line=${COMP_LINE:0:COMP_POINT} rest word cut= breaks=${COMP_WORDBREAKS//[!=:]/} i own= name\n"
    "\tlocal -a words=() starts=()\n"
    "\tfor ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "\t\trest=${line#\"${line%%[![:space:]]*}\"}\n"
    "\t\tword=${COMP_WORDS[i]}\n"
    "\t\t[ $i -lt $COMP_CWORD ] || word=$rest\n"
    "\t\tif [ $i -gt 0 ] && [ \"$rest\" = \"$line\" ]; then\n"
    "\t\t\twords[${#words[@]} - 1]+=$word\n"
    "\t\telse\n"
    "\t\t\twords+=(\"$word\") starts+=($i)\n"
    "\t\tfi\n"
    "\t\tline=${rest#\"$word\"}\n"
    "\tdone\n"
    "\tword=${words[${#words[@]} - 1]}\n"
    "\t[ -z \"$breaks\" ] || cut=${word%\"${word##*[$breaks]}\"}\n"
    "\tCOMPREPLY=()\n"
    "\twhile IFS= read -r line; do\n"
    "\t\tcase $line in\n"
    "\t\t$'\\t'command*) own=${line##* } ;;\n"
    "\t\t$'\\t'*) compopt -o default 2>/dev/null ;;\n"
    "\t\t*) line=${line%%$'\\t'*}; COMPREPLY+=(\"${line#\"$cut\"}\")\n"
    "\t\t\t[[ $line != *= ]] || compopt -o nospace 2>/dev/null ;;\n"
    "\t\tesac\n"
    "\tdone < <(flowsup completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
    "\t[ -n \"$own\" ] || return 0\n"
    "\tfor name in _comp_command_offset _command_offset; do\n"
    "\t\tif declare -F $name >/dev/null; then\n"
    "\t\t\t$name \"${starts[${#words[@]} - own]}\"\n"
    "\t\t\treturn\n"
    "\t\tfi\n"
    "\tdone\n"
    "\tcompopt -o default 2>/dev/null\n"
    "\t[ \"$own\" -gt 1 ] || mapfile -t COMPREPLY < <(compgen -c -- \"$word\")\n"
    "}\n"
    "complete -o nosort -F _flowsup flowsup 2>/dev/null || complete -F _flowsup flowsup\n";

static const char zsh[] =
    "#compdef flowsup\n"
    "# zsh completion for flowsup, from: flowsup completion zsh\n"
    "_flowsup() {\n"
    "\tlocal line word files=\n"
    "\tlocal -a entries=() more=()\n"
    "\tfor line in ${(f)\"$(flowsup completion words -- \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" \\\n"
    "\t    2>/dev/null)\"}; do\n"
    "\t\tif [[ $line == $'\\t'command* ]]; then\n"
    "\t\t\tshift $(( CURRENT - ${line##* } )) words\n"
    "\t\t\tCURRENT=${line##* }\n"
    "\t\t\t_normal\n"
    "\t\t\treturn\n"
    "\t\telif [[ $line == $'\\t'* ]]; then\n"
    "\t\t\tfiles=1\n"
    "\t\telse\n"
    "\t\t\t[[ ${line%%$'\\t'*} != *= ]] || more=(-S '')\n"
    "\t\t\tword=${${line%%$'\\t'*}//:/\\\\:} line=${line#*$'\\t'}\n"
    "\t\t\tentries+=($word${line:+:$line})\n"
    "\t\tfi\n"
    "\tdone\n"
    "\t(( $#entries )) && _describe -V flowsup entries \"$more[@]\"\n"
    "\t[[ -z $files ]] || { compset -P '*='; _files }\n"
    "}\n"
    "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n\t_flowsup \"$@\"\n"
    "else\n\tcompdef _flowsup flowsup\nfi\n";

static const char fish[] =
    "# fish completion for flowsup, from: flowsup completion fish\n"
    "function __flowsup_complete\n"
    "\tset -l current (commandline -ct)\n"
    "\tset -l before (string match -r -- '^(?:--[a-z-]+=)?(?:[^=/]+=)?' $current)\n"
    "\tfor line in (flowsup completion words -- (commandline -opc)[2..-1] \"$current\" 2>/dev/null)\n"
    "\t\tif string match -q -- \\t'command*' $line\n"
    "\t\t\tset -l n (string replace -r '.* ' '' -- $line)\n"
    "\t\t\tset -l words (commandline -opc)\n"
    "\t\t\tset -l own\n"
    "\t\t\ttest $n -lt 2; or set own (string escape -- $words[(math 1 - $n)..-1])\n"
    "\t\t\tcomplete -C (string join -- ' ' $own \"$current\")\n"
    "\t\telse if string match -q -- \\t'*' $line\n"
    "\t\t\tfor path in (__fish_complete_path (string replace -- \"$before\" '' \"$current\"))\n"
    "\t\t\t\tprintf '%s\\n' \"$before$path\"\n"
    "\t\t\tend\n"
    "\t\telse\n"
    "\t\t\tprintf '%s\\n' $line\n"
    "\t\tend\n"
    "\tend\nend\n"
    "complete -c flowsup -f -k -a '(__flowsup_complete)'\n";

const char *
complete_script(const char *shell)
{
	static const struct {
		const char *shell, *script;
	} all[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i].shell, shell) == 0)
			return all[i].script;
	return NULL;
}
