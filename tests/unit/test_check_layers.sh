#!/usr/bin/env bash
# Plants violations in a small source tree and looks whether scripts/check-layers finds each. TAP.
set -u
cd "$(dirname "$0")/../.." || exit 1
check=$PWD/scripts/check-layers
tree=$(mktemp -d "${TMPDIR:-/tmp}/flowsup-layers-XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
n=0

result() { # ok? text
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

fresh() { # a small tree that keeps all rules
	rm -rf "${tree:?}"/*
	mkdir -p "$tree"/include/flowsup "$tree"/shared/{sys,json,checkpoint,flow,store} \
	    "$tree"/{supervisor,worker}
	for h in err fs json checkpoint flow store; do : > "$tree/include/flowsup/$h.h"; done
	echo '#include "flowsup/err.h"' >> "$tree/include/flowsup/json.h"
	cat > "$tree/shared/json/tokens.c" <<-'C'
		#include <jsmn.h>
		#include "flowsup/json.h"
		/* printf("in a comment"); pthread_create(); sqlite3_open("state.db") */
		const char *text = "exit(1); fprintf(stderr) fy_node sqlite3_open";
		void f(struct s *s) { s->exit(1); s->printf("x"); snprintf(b, 3, "%d", '"'); }
	C
	printf '#include <pthread.h>\n#include "flowsup/fs.h"\n' > "$tree/shared/checkpoint/writer.c"
	printf '#include <libfyaml.h>\nint x = fy_node_compare();\n' > "$tree/shared/flow/document_yaml.c"
	printf '#include <sqlite3.h>\nint x = open("state.db");\n' > "$tree/shared/store/db.c"
	printf '#include "flowsup/store.h"\n#include "own.h"\nint main(void) { printf("x"); exit(0); }\n' \
	    > "$tree/supervisor/main.c"
	printf '#include <pthread.h>\nconst char *where = "see state.db";\n' > "$tree/worker/io.c"
}

caught() { # FILE CODE WANTED: appended there, the check must name that file and say WANTED
	local out status
	fresh
	mkdir -p "$tree/$(dirname "$1")"
	printf '%b\n' "$2" >> "$tree/$1"
	out=$("$check" "$tree")
	status=$?
	if [ "$status" = 1 ] && grep -q "^$1:[0-9]*: .*$3" <<< "$out"; then
		result 0 "$1: $3"
	else
		result 1 "$1: $3"
		printf '# exit %s: %s\n' "$status" "$out"
	fi
}

fresh
out=$("$check" "$tree")
result $? "a tree that keeps the rules passes"
[ -z "$out" ] || printf '# %s\n' "$out"

caught shared/sys/a.c '#include "flowsup/json.h"' 'sys may not use json'
caught include/flowsup/err.h '#include "flowsup/store.h"' 'sys may not use store'
caught shared/json/a.c '#include "flowsup/checkpoint.h"' 'json may not use checkpoint'
caught shared/checkpoint/a.c '  #  include "flowsup/flow.h"' 'checkpoint may not use flow'
caught shared/flow/a.c '#include "flowsup/store.h"' 'flow may not use store'
caught shared/flow/a.c '#include "../json/value.h"' 'private header'
caught supervisor/a.c '#include "worker/main.h"' 'private header'
caught worker/a.c '#include "../supervisor/daemon.h"' 'private header'
caught worker/a.c '#include "flowsup/unheard.h"' 'does not know'
caught shared/new/a.c 'int x;' 'does not know'
caught shared/json/writer.c '#include <jsmn.h>' 'jsmn'
caught shared/flow/plan.c 'void f(void) { fy_document_create(0); }' 'libfyaml'
caught supervisor/a.c '#include <sqlite3.h>' 'sqlite3'
caught worker/a.c 'int x = sqlite3_threadsafe();' 'sqlite3'
caught worker/main.c '#include <pthread.h>' 'pthread'
caught shared/checkpoint/load.c 'pthread_t t;' 'pthread'
caught supervisor/a.c 'int fd = openat(dir,\n    "state.db-wal", 0);' 'state.db'
caught worker/a.c 'FILE *f = fopen("/x/state.db", "r");' 'state.db'
caught shared/checkpoint/a.c 'void f(void) { unlinkat(d, "state.db-shm", 0); }' 'state.db'
caught shared/sys/a.c 'void f(void) { printf("x"); }' 'never prints'
caught shared/sys/a.c 'void f(void) { /* x */ exit (1); }' 'never prints'
caught shared/store/a.c 'void f(void) { fputs("x", stderr); }' 'stdout or stderr'
caught shared/store/a.c '/* one\n two */ FILE *f = stdout;' 'stdout or stderr'

"$check" "$tree/include" > /dev/null 2>&1
[ $? = 2 ]
result $? "what is no source tree is refused"
out=$("$check")
result $? "this tree keeps the rules"
[ -z "$out" ] || printf '%s\n' "$out" | sed 's/^/# /'
echo "1..$n"
