/* Checkpoints for tests, written as in flowsup-checkpoint(5); ' stands for ". */
#ifndef TEST_CKPT_TEXT_H
#define TEST_CKPT_TEXT_H

#include "ckpt_fixture.h"

#define G "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"
#define PLAN "[{'agent_id':'op-0','dep_indices':[],'run':'true','node_id':'" G "'}]"
#define BASE_WITH(version, plan, context, ops, spawned)                                            \
	"{'version':" version ",'generation':'" G "','journal_seq':0,'session_id':'s','prompt':'p',"   \
	"'plan':" plan ",'config':{'unknown':1},'flow_context':" context ",'ops':" ops ",'spawned':"   \
	spawned "}\n"
#define BASE BASE_WITH("3", PLAN, "{'k':[1]}", "{}", "[]")
#define OP(id) "{'agent_id':'" id "','status':'completed','response':'r'}"
#define NODE(id) "{'node_id':'" id "','status':'completed','response':'r'}"
#define PENDING(id) "{'node_id':'" id "','status':'pending','response':null}"
#define RECORD(generation, seq, kind, entry, context)                                              \
	"{'version':3,'generation':'" generation "','seq':" seq ",'kind':'" kind "','entry':" entry    \
	",'flow_context':" context "}\n"
#define R(seq, entry, context) RECORD(G, seq, "op", entry, context)
#define FIRST R("1", OP("op-0"), "null")
#define PATCH(text) "{'patch':[" text "]}"
#define V2_WITH(version, plan, spawned, more)                                                      \
	"{" version "'session_id':'s','prompt':'p','plan':" plan ",'flow_context':{'k':1},'ops':{'op-0':"  \
	OP("op-0") "},'spawned':" spawned ",'config':{'model_spec':'m','max_ops':0},'max_spawn':20" more "}"
#define V2_PLAN                                                                                    \
	"[{'task':'t','assignee':'a','inputs':[],'exit_criteria':null,'depends_on':[],'modes':[],"     \
	"'agent_id':'op-0','dep_indices':[]}]"

static inline char *
quoted(const char *text)
{
	char *copy = text != NULL ? strdup(text) : NULL;
	char *p;

	for (p = copy; p != NULL && *p != '\0'; p++)
		if (*p == '\'')
			*p = '"';
	return copy;
}

static inline void
put(int run_fd, const char *base, const char *journal)
{
	char *b = quoted(base), *j = quoted(journal);

	put_pair(run_fd, b, j);
	free(b);
	free(j);
}

#endif
