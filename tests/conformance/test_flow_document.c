/* Documents that are refused: which error, where, in which words, with which hint. */
#include "test.h"

#include "flowsup/flow.h"

#define TEXT(literal) {literal, sizeof(literal) - 1}

static const struct refused {
	const char *name;
	struct slice text;
	bool json;
	enum err_code code;
	unsigned line, column;
	const char *message, *hint;
} table[] = {
    {"empty", TEXT(""), false, ERR_DOCUMENT, 0, 0,
	"the document is empty",
	"man 5 flowsup-flow   # a flow needs a plan"},
    {"only_comment", TEXT("# nothing\n"), false, ERR_DOCUMENT, 0, 0,
	"the document is empty",
	"man 5 flowsup-flow   # a flow needs a plan"},
    {"only_white", TEXT("  \n"
	     "\n"), false, ERR_DOCUMENT, 0, 0,
	"the document is empty",
	"man 5 flowsup-flow   # a flow needs a plan"},
    {"null_document", TEXT("~\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow must be an object, not nothing",
	""},
    {"scalar_document", TEXT("hello\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow must be an object, not a text",
	""},
    {"list_document", TEXT("- a\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow must be an object, not a list",
	""},
    {"two_documents", TEXT("plan: [{id: a, run: x}]\n"
	     "---\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 2, 1,
	"a second document begins here",
	"a file holds one flow; put the others in files of their own"},
    {"yaml_1_1", TEXT("%YAML 1.1\n"
	     "---\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 1,
	"this document says YAML 1.1; flow documents are YAML 1.2",
	""},
    {"nul", TEXT("name: a\000b\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 8,
	"this is no text: it holds a NUL byte",
	""},
    {"control", TEXT("name: a\001b\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 8,
	"a control character (0x01) cannot stand here",
	""},
    {"delete", TEXT("name: a\177b\n"), false, ERR_SYNTAX, 1, 8,
	"a control character (0x7f) cannot stand here",
	""},
    {"latin1", TEXT("name: caf\351\n"), false, ERR_SYNTAX, 1, 10,
	"the text is not UTF-8: byte 0xe9",
	""},
    {"truncated_utf8", TEXT("name: \342\202"), false, ERR_SYNTAX, 1, 7,
	"the text is not UTF-8: byte 0xe2",
	""},
    {"overlong", TEXT("name: \300\257\n"), false, ERR_SYNTAX, 1, 7,
	"the text is not UTF-8: byte 0xc0",
	""},
    {"surrogate", TEXT("name: \355\240\200\n"), false, ERR_SYNTAX, 1, 7,
	"the text is not UTF-8: byte 0xed",
	""},
    {"above_unicode", TEXT("name: \364\220\200\200\n"), false, ERR_SYNTAX, 1, 7,
	"the text is not UTF-8: byte 0xf4",
	""},
    {"c1_control", TEXT("name: \302\233\n"), false, ERR_SYNTAX, 1, 7,
	"a control character (0x9b) cannot stand here",
	""},
    {"unclosed_list", TEXT("plan: [1\n"), false, ERR_SYNTAX, 2, 1,
	"not YAML: flow sequence without a closing bracket",
	""},
    {"unclosed_quote", TEXT("name: \"x\n"), false, ERR_SYNTAX, 1, 8,
	"not YAML: double-quoted scalar without closing quote",
	""},
    {"tab_indent", TEXT("plan:\n"
	     "\t- a\n"), false, ERR_SYNTAX, 2, 1,
	"not YAML: tab character may not be used as indentation",
	""},
    {"bad_escape", TEXT("name: \"\\q\"\n"), false, ERR_SYNTAX, 1, 8,
	"not YAML: invalid escape 'q' in double-quoted string",
	""},
    {"no_anchor", TEXT("name: *nobody\n"), false, ERR_SYNTAX, 1, 8,
	"alias *nobody: no such anchor before it",
	""},
    {"self_alias", TEXT("plan: &p\n"
	     "  - *p\n"), false, ERR_SYNTAX, 2, 6,
	"alias *p: it refers to itself",
	""},
    {"duplicate_key", TEXT("name: a\n"
	     "name: b\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 2, 1,
	"the key \"name\" stands here twice",
	""},
    {"duplicate_nested", TEXT("plan:\n"
	     "  - {id: a, run: x, id: b}\n"), false, ERR_SYNTAX, 2, 21,
	"the key \"id\" stands here twice",
	""},
    {"integer_key", TEXT("1: x\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 1,
	"a key must be a text, not integer",
	"put the key in quotes"},
    {"bool_key", TEXT("true: x\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 1,
	"a key must be a text, not boolean",
	"put the key in quotes"},
    {"null_key", TEXT("~: x\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 1,
	"a key must be a text, not null",
	"put the key in quotes"},
    {"list_key", TEXT("? [a]\n"
	     ": b\n"), false, ERR_SYNTAX, 1, 3,
	"a key must be a text, not array",
	"put the key in quotes"},
    {"unknown_tag", TEXT("name: !mine x\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 13,
	"the tag !mine means nothing here",
	"only the tags of YAML's core schema are known: !!str !!int !!float "
	"!!bool !!null !!seq !!map"},
    {"unknown_map_tag", TEXT("plan: !set {}\n"), false, ERR_SYNTAX, 1, 12,
	"the tag !set means nothing here",
	""},
    {"int_tag_misfit", TEXT("concurrency: !!int four\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 20,
	"\"four\" does not fit its tag !!int",
	""},
    {"infinite", TEXT("concurrency: .inf\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 14,
	".inf is not a finite number",
	"put it in quotes if a text is meant"},
    {"nan", TEXT("concurrency: .nan\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 14,
	".nan is not a finite number",
	"put it in quotes if a text is meant"},
    {"huge_hex", TEXT("concurrency: 0x11112222333344445\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 14,
	"the number 0x11112222333344445 is too large",
	""},
    {"too_large_real", TEXT("concurrency: 1e999\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_SYNTAX, 1, 14,
	"the number 1.0e999 cannot be represented",
	""},
    {"merge_key", TEXT("<<: {}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow has no key \"<<\"",
	"merge keys are not expanded; settings for all operations go to \"defaults\""},
    {"unknown_top", TEXT("plann: []\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow has no key \"plann\"",
	"did you mean \"plan\"?"},
    {"unknown_far", TEXT("zebra: 1\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow has no key \"zebra\"",
	""},
    {"no_plan", TEXT("name: x\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow needs a \"plan\"",
	"man 5 flowsup-flow shows one"},
    {"empty_plan", TEXT("plan: []\n"), false, ERR_DOCUMENT, 1, 7,
	"the plan is empty",
	""},
    {"null_plan", TEXT("plan:\n"), false, ERR_DOCUMENT, 1, 1,
	"\"plan\" must be a list of operations, not nothing",
	""},
    {"plan_object", TEXT("plan: {a: b}\n"), false, ERR_DOCUMENT, 1, 7,
	"\"plan\" must be a list of operations, not an object",
	""},
    {"plan_and_planner", TEXT("roles: {r: {}}\n"
	     "planner: {assignee: r, instruction: x}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 2, 10,
	"a flow has a \"plan\" or a \"planner\", not both",
	""},
    {"op_text", TEXT("plan: [a]\n"), false, ERR_DOCUMENT, 1, 8,
	"operation number 1: must be an object, not a text",
	""},
    {"op_null", TEXT("plan: [~]\n"), false, ERR_DOCUMENT, 1, 8,
	"operation number 1: must be an object, not nothing",
	""},
    {"op_no_id", TEXT("plan: [{run: x}]\n"), false, ERR_DOCUMENT, 1, 8,
	"operation number 1: has no \"id\"",
	""},
    {"op_no_work", TEXT("plan: [{id: a}]\n"), false, ERR_DOCUMENT, 1, 8,
	"operation \"a\": says nothing to do",
	"exactly one of \"run\", \"exec\" and \"instruction\""},
    {"op_two_works", TEXT("plan: [{id: a, run: x, exec: [y]}]\n"), false, ERR_DOCUMENT, 1, 30,
	"operation \"a\": says more than one thing to do",
	"exactly one of \"run\", \"exec\" and \"instruction\""},
    {"op_unknown_key", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, neds: [a]}\n"), false, ERR_DOCUMENT, 3, 21,
	"operation \"b\": an operation has no key \"neds\"",
	"did you mean \"needs\"?"},
    {"op_other_word", TEXT("plan: [{id: a, command: x}]\n"), false, ERR_DOCUMENT, 1, 16,
	"operation \"a\": an operation has no key \"command\"",
	"did you mean \"run\"?"},
    {"other_word", TEXT("steps: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 1,
	"a flow has no key \"steps\"",
	"did you mean \"plan\"?"},
    {"op_unknown_far", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, quux: 1}\n"), false, ERR_DOCUMENT, 3, 21,
	"operation \"b\": an operation has no key \"quux\"",
	""},
    {"id_integer", TEXT("plan: [{id: 7, run: x}]\n"), false, ERR_DOCUMENT, 1, 13,
	"operation number 1: \"id\" must be an id, not an integer",
	"put it in quotes"},
    {"id_bad", TEXT("plan: [{id: a b, run: x}]\n"), false, ERR_DOCUMENT, 1, 13,
	"operation number 1: \"id\" is no valid id: \"a b\"",
	"an id is a letter or digit and then at most 63 letters, digits, '.', "
	"'_' or '-'"},
    {"id_dash", TEXT("plan: [{id: -a, run: x}]\n"), false, ERR_DOCUMENT, 1, 13,
	"operation number 1: \"id\" is no valid id: \"-a\"",
	"an id is a letter or digit and then at most 63 letters, digits, '.', "
	"'_' or '-'"},
    {"id_long", TEXT("plan: [{id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	     "aaaaaaaaaaaaaaaaa, run: x}]\n"), false, ERR_DOCUMENT, 1, 13,
	"operation number 1: \"id\" is no valid id: "
	"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
	"an id is a letter or digit and then at most 63 letters, digits, '.', "
	"'_' or '-'"},
    {"id_empty", TEXT("plan: [{id: '', run: x}]\n"), false, ERR_DOCUMENT, 1, 13,
	"operation number 1: \"id\" is no valid id: \"\"",
	"an id is a letter or digit and then at most 63 letters, digits, '.', "
	"'_' or '-'"},
    {"id_twice", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: a, run: y}\n"), false, ERR_DOCUMENT, 3, 10,
	"the id \"a\" is used twice",
	"it stands first in line 2"},
    {"id_of_foreach", TEXT("plan:\n"
	     "  - {id: a, run: x, foreach: [1, 2]}\n"
	     "  - {id: a.1, run: y}\n"), false, ERR_DOCUMENT, 3, 10,
	"the id \"a.1\" is used twice",
	"a foreach makes operations a.0, a.1, ..."},
    {"id_of_foreach_base", TEXT("plan:\n"
	     "  - {id: a, run: x, foreach: [1]}\n"
	     "  - {id: a, run: y}\n"), false, ERR_DOCUMENT, 3, 10,
	"the id \"a\" is used twice",
	"a foreach makes operations a.0, a.1, ..."},
    {"foreach_id_long", TEXT("plan: [{id: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	     "aaaaaaaaaaaaaaa, run: x, foreach: [1]}]\n"), false, ERR_DOCUMENT, 1, 13,
	"operation "
	"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": "
	"the id "
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.0 is "
	"longer than 64 characters",
	""},
    {"run_list", TEXT("plan: [{id: a, run: [x]}]\n"), false, ERR_DOCUMENT, 1, 21,
	"operation \"a\": \"run\" must be shell text, not a list",
	"a program and its arguments are a list: exec: [PROGRAM, ARGUMENT]"},
    {"run_empty", TEXT("plan: [{id: a, run: ''}]\n"), false, ERR_DOCUMENT, 1, 21,
	"operation \"a\": \"run\" is empty",
	""},
    {"run_blank", TEXT("plan: [{id: a, run: \"  \"}]\n"), false, ERR_DOCUMENT, 1, 21,
	"operation \"a\": \"run\" is empty",
	""},
    {"exec_text", TEXT("plan: [{id: a, exec: ls}]\n"), false, ERR_DOCUMENT, 1, 22,
	"operation \"a\": \"exec\" must be a list: program and arguments, not a text",
	"a program and its arguments are a list: exec: [PROGRAM, ARGUMENT]"},
    {"exec_empty", TEXT("plan: [{id: a, exec: []}]\n"), false, ERR_DOCUMENT, 1, 22,
	"operation \"a\": \"exec\" names no program",
	"a program and its arguments are a list: exec: [PROGRAM, ARGUMENT]"},
    {"notify_text", TEXT("notify: tell\nplan: [{id: a, run: b}]\n"), false, ERR_DOCUMENT, 1, 9,
	"\"notify\" must be an argv or {command, on}, not a text",
	"a program and its arguments are a list: notify: [PROGRAM, ARGUMENT]"},
    {"exec_integer", TEXT("plan: [{id: a, exec: [sleep, 5]}]\n"), false, ERR_DOCUMENT, 1, 30,
	"operation \"a\": \"exec\" holds texts, not an integer",
	"put it in quotes"},
    {"exec_nul", TEXT("plan: [{id: a, exec: [\"a\\0b\"]}]\n"), false, ERR_DOCUMENT, 1, 23,
	"operation \"a\": \"exec\" holds a NUL character",
	""},
    {"needs_text", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: a}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": \"needs\" must be a list of ids, not a text",
	"write a list: needs: [...]"},
    {"needs_dangling", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [aa]}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": \"needs\" names \"aa\", and no operation has this id",
	"did you mean \"a\"?"},
    {"needs_far", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [zebra]}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": \"needs\" names \"zebra\", and no operation has this id",
	""},
    {"needs_self", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [b]}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": it needs itself",
	"take it out: an operation starts when what it needs has ended"},
    {"needs_twice", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [a, a]}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": it needs \"a\" twice",
	""},
    {"needs_integer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [1]}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": \"needs\" must be an id or {op, on, when}, not an integer",
	"put it in quotes"},
    {"needs_no_op", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{on: failure}]}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": a need needs the key \"op\"",
	""},
    {"needs_on", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, on: sucess}]}\n"), false, ERR_DOCUMENT, 3, 41,
	"operation \"b\": \"on\" must be success, failure or always, not \"sucess\"",
	"did you mean \"success\"?"},
    {"needs_unknown", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, if: x}]}\n"), false, ERR_DOCUMENT, 3, 37,
	"operation \"b\": a need has no key \"if\"",
	""},
    {"when_no_pointer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {equals: 1}}]}\n"), false, ERR_DOCUMENT, 3, 43,
	"operation \"b\": \"when\" needs the key \"pointer\"",
	""},
    {"when_two", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {pointer: /x, equa"
	     "ls: 1, exists: true}}]}\n"), false, ERR_DOCUMENT, 3, 43,
	"operation \"b\": \"when\" needs exactly one of \"equals\", \"exists\" and "
	"\"matches\"",
	""},
    {"when_none", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {pointer: /x}}]}\n"), false, ERR_DOCUMENT, 3, 43,
	"operation \"b\": \"when\" needs exactly one of \"equals\", \"exists\" and "
	"\"matches\"",
	""},
    {"when_pointer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {pointer: x, equals: 1}}]}\n"), false, ERR_DOCUMENT, 3, 53,
	"operation \"b\": \"pointer\" is no JSON pointer: \"x\"",
	"a pointer is empty or begins with /, such as /verdict or /items/0"},
    {"when_exists", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {pointer: /x, exists: 1}}]}\n"), false, ERR_DOCUMENT, 3, 65,
	"operation \"b\": \"exists\" must be true or false, not an integer",
	""},
    {"when_pattern", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {pointer: '', matches: '('}}]}\n"), false, ERR_DOCUMENT, 3, 66,
	"operation \"b\": \"matches\" is no extended regular expression: a ( is "
	"not closed",
	""},
    {"when_backreference", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {pointer: '', matc"
	     "hes: '(a)\\1'}}]}\n"), false, ERR_DOCUMENT, 3, 66,
	"operation \"b\": \"matches\" is no extended regular expression: \\1 is "
	"not known",
	"nothing refers back to a group: write out what may stand there"},
    {"when_huge", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, needs: [{op: a, when: {pointer: '', matc"
	     "hes: '(a{200}){200}'}}]}\n"), false, ERR_DOCUMENT, 3, 66,
	"operation \"b\": the pattern of \"matches\" is too costly: it has more "
	"than 32768 places",
	"counts are written out: a{100} is 100 places, and a pattern may have "
	"32768"},
    {"cycle", TEXT("plan:\n"
	     "  - {id: a, run: x, needs: [c]}\n"
	     "  - {id: b, run: x, needs: [a]}\n"
	     "  - {id: c, run: x, needs: [b]}\n"), false, ERR_DOCUMENT, 2, 10,
	"operations wait for each other: a -> b -> c -> a",
	"take one of these out of the \"needs\" of the next"},
    {"cycle_behind", TEXT("plan:\n"
	     "  - {id: z, run: x, needs: [b]}\n"
	     "  - {id: a, run: x, needs: [b]}\n"
	     "  - {id: b, run: x, needs: [a]}\n"), false, ERR_DOCUMENT, 3, 10,
	"operations wait for each other: a -> b -> a",
	"take one of these out of the \"needs\" of the next"},
    {"variables", TEXT("plan:\n"
	     "  - {id: a.b, run: x}\n"
	     "  - {id: a-b, run: x}\n"
	     "  - {id: c, run: x, needs: [a.b, a-b]}\n"), false, ERR_DOCUMENT, 4, 28,
	"operation \"c\": two of its predecessors would share the variable "
	"FLOWSUP_DEP_a_b",
	"'.' and '-' both become '_' in the name of a variable; rename one of them"},
    {"timeout_word", TEXT("plan: [{id: a, run: x, timeout: soon}]\n"), false, ERR_DOCUMENT, 1, 33,
	"operation \"a\": \"timeout\" must be a duration such as 90s or 2h30m: "
	"\"soon\" is not a duration: a number is missing",
	"units are w, d, h, m, s, ms: 90s, 2h30m, 1.5h; a bare number is seconds"},
    {"timeout_zero", TEXT("plan: [{id: a, run: x, timeout: 0}]\n"), false, ERR_DOCUMENT, 1, 33,
	"operation \"a\": \"timeout\" must be longer than nothing",
	""},
    {"timeout_below_a_millisecond", TEXT("plan: [{id: a, run: x, timeout: 0.0001ms}]\n"), false, ERR_DOCUMENT, 1, 33,
	"operation \"a\": \"timeout\" must be at least 1ms",
	""},
    {"artifact_directory", TEXT("plan: [{id: a, run: x, artifacts: [b/]}]\n"), false, ERR_DOCUMENT, 1, 36,
	"operation \"a\": \"artifacts\" holds \"b/\", a directory",
	"name the files in it"},
    {"artifact_below_another", TEXT("plan: [{id: a, run: x, artifacts: [b, b/c]}]\n"), false, ERR_DOCUMENT, 1, 35,
	"operation \"a\": \"artifacts\" holds \"b\" and \"b/c\"",
	"each is a file: none lies below another"},
    {"schema_false", TEXT("plan: [{id: a, run: x, response: json, schema: false}]\n"), false, ERR_DOCUMENT, 1, 48,
	"operation \"a\": \"schema\" must be an object, not false",
	""},
    {"timeout_negative", TEXT("plan: [{id: a, run: x, timeout: -5}]\n"), false, ERR_DOCUMENT, 1, 33,
	"operation \"a\": \"timeout\" must be a duration such as 90s or 2h30m: "
	"\"-5\" is not a duration: it is negative",
	"units are w, d, h, m, s, ms: 90s, 2h30m, 1.5h; a bare number is seconds"},
    {"timeout_list", TEXT("plan: [{id: a, run: x, timeout: [1]}]\n"), false, ERR_DOCUMENT, 1, 33,
	"operation \"a\": \"timeout\" must be a duration such as 90s or 2h30m, not "
	"a list",
	""},
    {"grace_bool", TEXT("plan: [{id: a, run: x, grace: true}]\n"), false, ERR_DOCUMENT, 1, 31,
	"operation \"a\": \"grace\" must be a duration such as 90s or 2h30m, not true",
	""},
    {"bool_yes", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, leave: yes}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": \"leave\" must be true or false, not a text",
	"write leave: true"},
    {"bool_no", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, idempotent: no}\n"), false, ERR_DOCUMENT, 3, 33,
	"operation \"b\": \"idempotent\" must be true or false, not a text",
	"write idempotent: false"},
    {"bool_text", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, context: \"True\"}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": \"context\" must be true or false, not a text",
	"write context: true"},
    {"bool_word", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, context: maybe}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": \"context\" must be true or false, not a text",
	""},
    {"bool_integer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, leave: 1}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": \"leave\" must be true or false, not an integer",
	""},
    {"response_word", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, response: jsn}\n"), false, ERR_DOCUMENT, 3, 31,
	"operation \"b\": \"response\" must be text, json, jsonl or none, not \"jsn\"",
	"did you mean \"json\"?"},
    {"response_integer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, response: 1}\n"), false, ERR_DOCUMENT, 3, 31,
	"operation \"b\": \"response\" must be text, json, jsonl or none, not an "
	"integer",
	""},
    {"output_word", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, output: both}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": \"output\" must be separate or merged, not \"both\"",
	""},
    {"gate_word", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, gate: aprove}\n"), false, ERR_DOCUMENT, 3, 27,
	"operation \"b\": \"gate\" must be approve, not \"aprove\"",
	"did you mean \"approve\"?"},
    {"schema_text", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, schema: {type: object}}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": \"schema\" is for responses that are JSON",
	"add response: json"},
    {"umask_integer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, umask: 022}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": \"umask\" must be a text of octal digits, not an integer",
	"put it in quotes: umask: \"022\""},
    {"umask_range", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, umask: '7777'}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": \"umask\" must be from 000 to 777",
	""},
    {"umask_digits", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, umask: '088'}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": \"umask\" must be a text of octal digits",
	""},
    {"nice_range", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, nice: 20}\n"), false, ERR_DOCUMENT, 3, 27,
	"operation \"b\": \"nice\" must be from -20 to 19",
	""},
    {"nice_text", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, nice: low}\n"), false, ERR_DOCUMENT, 3, 27,
	"operation \"b\": \"nice\" must be an integer, not a text",
	""},
    {"limits_unknown", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, limits: {mem: 5}}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": \"limits\" has no key \"mem\"",
	"did you mean \"memory\"?"},
    {"limits_memory", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, limits: {memory: lots}}\n"), false, ERR_DOCUMENT, 3, 38,
	"operation \"b\": \"memory\" must be a size such as 512M: \"lots\" is not a "
	"size: a number is missing",
	"sizes are 512k, 64M, 1.5G or a number of bytes"},
    {"limits_files", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, limits: {files: 1}}\n"), false, ERR_DOCUMENT, 3, 37,
	"operation \"b\": \"files\" must be from 4 to 1073741824",
	""},
    {"limits_list", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, limits: [1]}\n"), false, ERR_DOCUMENT, 3, 29,
	"operation \"b\": \"limits\" must be an object, not a list",
	""},
    {"retry_integer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, retry: 3}\n"), false, ERR_DOCUMENT, 3, 28,
	"operation \"b\": \"retry\" must be an object, not an integer",
	""},
    {"retry_attempts", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, retry: {attempts: 0}}\n"), false, ERR_DOCUMENT, 3, 39,
	"operation \"b\": \"attempts\" must be from 1 to 1000",
	""},
    {"retry_factor", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, retry: {factor: 0.5}}\n"), false, ERR_DOCUMENT, 3, 37,
	"operation \"b\": \"factor\" must be from 1 to 100",
	""},
    {"retry_class", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, retry: {on: [tiemout]}}\n"), false, ERR_DOCUMENT, 3, 34,
	"operation \"b\": no failure is of class \"tiemout\"",
	"did you mean \"timeout\"?"},
    {"retry_code", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, retry: {on: [0]}}\n"), false, ERR_DOCUMENT, 3, 34,
	"operation \"b\": an exit code to retry is from 1 to 255",
	""},
    {"retry_on_empty", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, retry: {on: []}}\n"), false, ERR_DOCUMENT, 3, 33,
	"operation \"b\": \"on\" is empty, so nothing would be retried",
	""},
    {"retry_on_bool", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, retry: {on: [true]}}\n"), false, ERR_DOCUMENT, 3, 34,
	"operation \"b\": \"on\" holds exit codes and failure classes, not true",
	""},
    {"silence_do", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, silence: {after: 5s, do: stop}}\n"), false, ERR_DOCUMENT, 3, 46,
	"operation \"b\": \"do\" must be end or notify, not \"stop\"",
	""},
    {"silence_no_after", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, silence: {do: end}}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": \"silence\" needs the key \"after\"",
	""},
    {"artifacts_absolute", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, artifacts: [/etc/passwd]}\n"), false, ERR_DOCUMENT, 3, 33,
	"operation \"b\": \"artifacts\" holds \"/etc/passwd\"",
	"a path is relative to the operation's artifact directory, without \"..\""},
    {"artifacts_itself", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, artifacts: [.//./]}\n"), false, ERR_DOCUMENT, 3, 33,
	"operation \"b\": \"artifacts\" holds \".//./\"",
	"a path is relative to the operation's artifact directory, without \"..\""},
    {"cwd_template", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, cwd: '{{prompt}}'}\n"), false, ERR_DOCUMENT, 3, 26,
	"operation \"b\": templates do not work in \"cwd\"",
	"give it a name under env, such as env: {DIR: \"{{...}}\"}, and run: cd \"$DIR\""},
    {"artifacts_up", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, artifacts: [a/../../b]}\n"), false, ERR_DOCUMENT, 3, 33,
	"operation \"b\": \"artifacts\" holds \"a/../../b\"",
	"a path is relative to the operation's artifact directory, without \"..\""},
    {"artifacts_text", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, artifacts: x}\n"), false, ERR_DOCUMENT, 3, 32,
	"operation \"b\": \"artifacts\" must be a list of paths, not a text",
	"write a list: artifacts: [...]"},
    {"env_list", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, env: [A]}\n"), false, ERR_DOCUMENT, 3, 26,
	"operation \"b\": \"env\" must be an object, not a list",
	""},
    {"env_integer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, env: {PORT: 8080}}\n"), false, ERR_DOCUMENT, 3, 33,
	"operation \"b\": PORT: a value is a text or {required: true}, not an integer",
	"put it in quotes"},
    {"env_null", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, env: {A: }}\n"), false, ERR_DOCUMENT, 3, 27,
	"operation \"b\": A: a value is a text or {required: true}, not nothing",
	""},
    {"env_name", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, env: {a-b: x}}\n"), false, ERR_DOCUMENT, 3, 27,
	"operation \"b\": \"a-b\" cannot be the name of a variable",
	""},
    {"env_own", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, env: {FLOWSUP_HOME: x}}\n"), false, ERR_DOCUMENT, 3, 27,
	"operation \"b\": FLOWSUP_HOME: names that begin with FLOWSUP_ are "
	"flowsup's own",
	""},
    {"env_required", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, env: {A: {requird: true}}}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": a variable needs the key \"required\"",
	""},
    {"foreach_integer", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, foreach: 5}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": \"foreach\" must be a list, a JSON pointer or {op, "
	"pointer}, not an integer",
	""},
    {"foreach_object", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, foreach: {op: a}}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": \"foreach\" needs the key \"pointer\"",
	""},
    {"foreach_whose", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, foreach: /items}\n"), false, ERR_DOCUMENT, 3, 30,
	"operation \"b\": \"foreach\" does not say whose response it goes into",
	"write {op: ID, pointer: /...}"},
    {"assignee_unknown", TEXT("roles: {writer: {}}\n"
	     "plan: [{id: a, run: x, assignee: writr}]\n"), false, ERR_DOCUMENT, 2, 34,
	"operation \"a\": there is no role \"writr\"",
	"did you mean \"writer\"?"},
    {"assignee_no_roles", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, assignee: writer}\n"), false, ERR_DOCUMENT, 3, 31,
	"operation \"b\": there is no role \"writer\"",
	"declare it under \"roles\""},
    {"instruction_alone", TEXT("plan: [{id: a, instruction: do it}]\n"), false, ERR_DOCUMENT, 1, 8,
	"operation \"a\": an instruction needs an \"assignee\"",
	"name a role that is declared under \"roles\""},
    {"role_key", TEXT("roles: {r: {modl: x}}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 13,
	"role \"r\": a role has no key \"modl\"",
	"did you mean \"model\"?"},
    {"role_text", TEXT("roles: {r: x}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 12,
	"role \"r\": a role must be an object, not a text",
	""},
    {"role_name", TEXT("roles: {'a b': {}}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 9,
	"role \"a b\": this is no valid name for a role",
	""},
    {"role_escalates", TEXT("roles: {r: {escalate_to: q}}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 26,
	"there is no role \"q\"",
	""},
    {"inherit_run", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: y, inherit_context: a}\n"), false, ERR_DOCUMENT, 3, 38,
	"operation \"b\": \"inherit_context\" is only for operations with "
	"\"instruction\"",
	""},
    {"template_run", TEXT("plan:\n"
	     "  - {id: a, run: 'echo {{prompt}}'}\n"), false, ERR_DOCUMENT, 2, 18,
	"operation \"a\": templates do not work in \"run\"",
	"give it a name under env, such as env: {VALUE: \"{{...}}\"}, and use "
	"\"$VALUE\""},
    {"template_unknown", TEXT("plan:\n"
	     "  - {id: a, exec: ['{{op.a}}']}\n"), false, ERR_DOCUMENT, 2, 20,
	"operation \"a\": {{op.a}} is no template",
	"templates are {{ops.ID.response}} {{artifacts.ID}} {{prompt}} "
	"{{args.NAME}} {{item}}; write \\{{ where {{ stands for itself"},
    {"template_open", TEXT("plan:\n"
	     "  - {id: a, exec: ['{{prompt']}\n"), false, ERR_DOCUMENT, 2, 20,
	"operation \"a\": \"{{prompt...\" is not closed by }}",
	"write \\{{ where {{ stands for itself"},
    {"template_blank_open", TEXT("plan:\n"
	     "  - {id: a, exec: ['a {{ b']}\n"), false, ERR_DOCUMENT, 2, 20,
	"operation \"a\": \"{{ b...\" is not closed by }}",
	"write \\{{ where {{ stands for itself"},
    {"template_dangling", TEXT("plan:\n"
	     "  - {id: a, exec: ['{{ops.bb.response}}']}\n"), false, ERR_DOCUMENT, 2, 20,
	"operation \"a\": \"{{ops.ID.response}}\" names \"bb\", and no operation has "
	"this id",
	""},
    {"template_order", TEXT("plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, exec: ['{{ops.a.response}}']}\n"), false, ERR_DOCUMENT, 3, 20,
	"operation \"b\": \"{{ops.ID.response}}\" names \"a\", which need not have "
	"ended before this begins",
	"add a to its \"needs\""},
    {"template_item", TEXT("plan:\n"
	     "  - {id: a, exec: ['{{item}}']}\n"), false, ERR_DOCUMENT, 2, 20,
	"operation \"a\": {{item}} has a meaning only with \"foreach\"",
	""},
    {"template_args", TEXT("plan:\n"
	     "  - {id: a, exec: ['{{args.x}}']}\n"), false, ERR_DOCUMENT, 2, 20,
	"operation \"a\": {{args.x}} names no argument",
	"declare it under \"args\""},
    {"template_args_near", TEXT("args: {field: {type: string}}\n"
	     "plan:\n"
	     "  - {id: a, exec: ['{{args.fiel}}']}\n"), false, ERR_DOCUMENT, 3, 20,
	"operation \"a\": {{args.fiel}} names no argument",
	"did you mean {{args.field}}?"},
    {"template_foreach", TEXT("plan:\n"
	     "  - {id: a, run: x, foreach: [1]}\n"
	     "  - {id: b, needs: [a], exec: ['{{ops.a.response}}']}\n"), false, ERR_DOCUMENT, 3, 32,
	"operation \"b\": \"{{ops.ID.response}}\" names \"a\", which is a foreach",
	"name one of its operations, such as a.0, or read the files FLOWSUP_DEP_..."},
    {"template_env", TEXT("env: {X: '{{ops.a.response}}'}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 10,
	"\"{{ops.ID.response}}\" cannot name an operation here: nothing has run yet",
	""},
    {"template_sh", TEXT("roles: {r: {provider: sh}}\n"
	     "plan: [{id: a, assignee: r, instruction: 'x {{prompt}}'}]\n"), false, ERR_DOCUMENT, 2, 42,
	"operation \"a\": templates do not work in an instruction for the "
	"provider \"sh\", which is shell text",
	"give it a name under env, such as env: {VALUE: \"{{...}}\"}, and use "
	"\"$VALUE\""},
    {"concurrency_zero", TEXT("concurrency: 0\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 14,
	"\"concurrency\" must be from 1 to 100000",
	""},
    {"concurrency_real", TEXT("concurrency: 1.5\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 14,
	"\"concurrency\" must be an integer, not a number with a fraction",
	""},
    {"concurrency_text", TEXT("concurrency: many\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 14,
	"\"concurrency\" must be an integer, not a text",
	""},
    {"max_ops_small", TEXT("max_ops: 1\n"
	     "plan:\n"
	     "  - {id: a, run: x}\n"
	     "  - {id: b, run: x}\n"), false, ERR_DOCUMENT, 3, 3,
	"2 operations are planned, and max_ops is 1",
	"max_ops: 2, or --max-ops 2; more where operations add others"},
    {"max_ops_large", TEXT("max_ops: 100001\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 10,
	"\"max_ops\" must be from 1 to 100000",
	""},
    {"reactive_bool", TEXT("reactive: true\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 11,
	"\"reactive\" must be off, all or a list of roles",
	"write reactive: all"},
    {"reactive_role", TEXT("reactive: [nobody]\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 12,
	"there is no role \"nobody\"",
	"declare it under \"roles\""},
    {"restart_on", TEXT("restart: {on: exit}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 15,
	"\"on\" must be crash, not \"exit\"",
	""},
    {"notify_empty", TEXT("notify: []\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 9,
	"\"notify\" names no program",
	"a program and its arguments are a list: notify: [PROGRAM, ARGUMENT]"},
    {"notify_on", TEXT("notify: {command: [x], on: some}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 28,
	"\"on\" must be problems or all, not \"some\"",
	""},
    {"orphans", TEXT("orphans: never\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 10,
	"\"orphans\" must be keep, end or {keep: DURATION}",
	""},
    {"args_type", TEXT("args: {x: {type: int}}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 18,
	"\"type\" must be string, integer, number or boolean, not \"int\"",
	"did you mean \"integer\"?"},
    {"args_default", TEXT("args: {x: {type: integer, default: y}}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 36,
	"the default is a text and does not fit the argument's type",
	""},
    {"synthesis", TEXT("synthesis: {instruction: x}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 12,
	"a planner or synthesis needs the key \"assignee\"",
	""},
    {"name_empty", TEXT("name: ''\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 7,
	"\"name\" is empty",
	""},
    {"fail_fast", TEXT("fail_fast: on\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 12,
	"\"fail_fast\" must be true or false, not a text",
	"write fail_fast: true"},
    {"defaults_key", TEXT("defaults: {run: x}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 12,
	"defaults: \"defaults\" has no key \"run\"",
	""},
    {"defaults_retry", TEXT("defaults: {retry: {attempt: 2}}\n"
	     "plan: [{id: a, run: x}]\n"), false, ERR_DOCUMENT, 1, 20,
	"defaults: \"retry\" has no key \"attempt\"",
	"did you mean \"attempts\"?"},
    {"json_comma", TEXT("{\"plan\": [],}"), true, ERR_SYNTAX, 1, 13,
	"syntax error: expected a member name",
	""},
    {"json_duplicate", TEXT("{\"name\": \"a\", \"n\\u0061me\": \"b\"}"), true, ERR_SYNTAX, 1, 15,
	"the name \"n\\u0061me\" stands here twice",
	""},
    {"json_trailing", TEXT("{\"plan\": []} x"), true, ERR_SYNTAX, 1, 14,
	"text after the value",
	""},
    {"json_single", TEXT("{'plan': []}"), true, ERR_SYNTAX, 1, 2,
	"syntax error: expected a member name or '}'",
	""},
    {"json_comment", TEXT("{\"plan\": [] // no\n"
	     "}"), true, ERR_SYNTAX, 1, 13,
	"syntax error: expected ',' or '}'",
	""},
    {"json_unknown", TEXT("{\n"
	     "  \"plan\": [{\"id\": \"a\", \"run\": \"x\", \"need\": []}]\n"
	     "}"), true, ERR_DOCUMENT, 2, 36,
	"operation \"a\": an operation has no key \"need\"",
	"did you mean \"needs\"?"},
    {"json_truncated", TEXT("{\"plan\": ["), true, ERR_SYNTAX, 1, 11,
	"text ends before the value does: expected a value",
	""},
    {"json_bom", TEXT("\357\273\277{}"), true, ERR_SYNTAX, 1, 1,
	"syntax error: byte order mark",
	""},
    {"json_lone", TEXT("{\"plan\": [{\"id\": \"a\", \"run\": \"\\ud800\"}]}"), true, ERR_DOCUMENT, 1, 30,
	"operation \"a\": \"run\" holds half of a surrogate pair",
	""},
    {"json_nul", TEXT("{\"plan\": [{\"id\": \"a\", \"exec\": [\"\\u0000\"]}]}"), true, ERR_DOCUMENT, 1, 32,
	"operation \"a\": \"exec\" holds a NUL character",
	""},
    {"json_position", TEXT("{\"plan\":\n"
	     " [{\"id\": \"a\",\n"
	     "   \"run\": 5}]}"), true, ERR_DOCUMENT, 3, 11,
	"operation \"a\": \"run\" must be shell text, not an integer",
	""},
    {"json_infinite", TEXT("{\"concurrency\": 1e999}"), true, ERR_SYNTAX, 1, 17,
	"number too large for a double",
	""},
};

static const struct flow_diagnostic *
first_problem(const struct flow_diagnostics *d)
{
	size_t i = 0;

	while (i < d->count && d->items[i].warning)
		i++;
	assert_true(i < d->count);
	return &d->items[i];
}

static void
check_refused(const struct refused *c)
{
	struct flow_source source = {"file.yaml", c->text, c->json};
	struct flow_diagnostics d = {0};
	const struct flow_diagnostic *p;
	struct flow *f = NULL;
	struct err e = {0};
	char place[64];

	print_message("# %s\n", c->name);
	assert_fails(flow_read(&source, &f, &d, &e), c->code, e);
	p = first_problem(&d);
	assert_string_equal(p->message, c->message);
	assert_string_equal(p->hint, c->hint);
	assert_int_equal(p->where.line, c->line);
	assert_int_equal(p->where.column, c->column);
	if (c->line > 0)
		snprintf(place, sizeof(place), "file.yaml:%u:%u: ", c->line, c->column);
	else
		snprintf(place, sizeof(place), "file.yaml: ");
	assert_memory_equal(e.msg, place, strlen(place));
	assert_string_equal(e.msg + strlen(place), c->message);
	assert_string_equal(e.hint, c->hint);
	flow_diagnostics_clear(&d);
}

static void
test_flow_document__refused(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		check_refused(&table[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_flow_document__refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
