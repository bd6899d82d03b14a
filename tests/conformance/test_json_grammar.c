/* What the reader takes and refuses: RFC 8259, and the stricter rules of flowsup-checkpoint(5). */
#include "test.h"

#include "flowsup/json.h"

/* ---- accepted: the text and its canonical encoding (NULL: the same) ---- */

static const struct accepted {
	const char *text;
	const char *canonical;
} accepted[] = {
    /* literals and bare values */
    {"null", NULL},
    {"true", NULL},
    {"false", NULL},
    {"0", NULL},
    {"42", NULL},
    {" 42 ", "42"},
    {"\n42\r\n\t", "42"},
    {"\"a\"", NULL},
    {"\"\"", NULL},
    {"[]", NULL},
    {"{}", NULL},
    {"[ ]", "[]"},
    {"{ }", "{}"},
    {" [ ] ", "[]"},
    {"-1", NULL},
    {"1.5", NULL},
    {"1e2 ", "100.0"},
    /* integers */
    {"[-0]", "[0]"},
    {"[9223372036854775807]", NULL},
    {"[9223372036854775808]", NULL},
    {"[-9223372036854775808]", NULL},
    {"[-9223372036854775809]", NULL},
    {"[18446744073709551615]", NULL},
    {"[123456789012345678901234567890123456789012345678901234567890]", NULL},
    {"[-123456789012345678901234567890]", NULL},
    {"[10,100,1000,64,63,65]", NULL},
    /* reals */
    {"[1.0]", NULL},
    {"[-0.0]", NULL},
    {"[-0e5]", "[-0.0]"},
    {"[0.1]", NULL},
    {"[1.10]", "[1.1]"},
    {"[1e0]", "[1.0]"},
    {"[1E+2]", "[100.0]"},
    {"[1e-2]", "[0.01]"},
    {"[1e15]", "[1000000000000000.0]"},
    {"[1e16]", "[1e16]"},
    {"[1e22]", NULL},
    {"[1e23]", NULL},
    {"[0.0001]", NULL},
    {"[0.00001]", "[1e-5]"},
    {"[1.7976931348623157e308]", NULL},
    {"[17976931348623157e292]", "[1.7976931348623157e308]"},
    {"[2.2250738585072014e-308]", NULL},
    {"[5e-324]", NULL},
    {"[4.9406564584124654e-324]", "[5e-324]"},
    /* Powers of two, of which the digits that are nearest read back as the double below. */
    {"[5.6843418860808015e-14]", "[5.684341886080802e-14]"},
    {"[2.2250738585072014e-308]", NULL},
    {"[1.7800590868057611e-307]", NULL},
    {"[9007199254740992.0]", NULL},
    {"[9.671406556917033e24]", NULL},
    {"[1e-999]", "[0.0]"},
    {"[0e999]", "[0.0]"},
    {"[9007199254740993.0]", "[9007199254740992.0]"},
    {"[123456789.123456789]", "[123456789.12345679]"},
    {"[0.30000000000000004]", NULL},
    {"[3.141592653589793]", NULL},
    {"[3.14159265358979323846264338327950288419716939937510582097494459230781640628620899]",
	"[3.141592653589793]"},
    /* strings */
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
    {"\"\\u0041\"", "\"A\""},
    {"\"\\u00e9\"", NULL},
    {"\"\\u00E9\"", "\"\\u00e9\""},
    {"\"\xc3\xa9\"", "\"\\u00e9\""},
    {"\"\\u20ac\"", NULL},
    {"\"\xe2\x82\xac\"", "\"\\u20ac\""},
    {"\"\\ud83d\\ude00\"", NULL},
    {"\"\\uD83D\\uDE00\"", "\"\\ud83d\\ude00\""},
    {"\"\xf0\x9f\x98\x80\"", "\"\\ud83d\\ude00\""},
    {"\"\xf4\x8f\xbf\xbf\"", "\"\\udbff\\udfff\""},
    {"\"\\uffff\"", NULL},
    {"\"\xef\xbf\xbf\"", "\"\\uffff\""},
    {"\"\\u0000\"", NULL},
    {"\"a\\u0000b\"", NULL},
    {"\"\\u001f\"", NULL},
    {"\"\\u007f\"", NULL},
    {"\"\x7f\"", "\"\\u007f\""},
    {"\"/\"", NULL},
    {"\"\xef\xbb\xbf\"", "\"\\ufeff\""},
    {"\"[1,2]{}:\"", NULL},
    {"\"0123456789012345678901234567890123456789\"", NULL},
    {"\"01234567\\n012345678901234\\u00e9678901234567890123456789\"", NULL},
    /* lone surrogates come back as they were */
    {"\"\\ud800\"", NULL},
    {"\"\\udc00\"", NULL},
    {"\"\\ude00\\ud83d\"", NULL},
    {"\"\\ud83d\\ud83d\\ude00\"", NULL},
    {"\"\\ud83dx\\ude00\"", NULL},
    {"{\"\\ud800\":1}", NULL},
    /* arrays */
    {"[1,2]", NULL},
    {"[ 1 , 2 ]", "[1,2]"},
    {"[[]]", NULL},
    {"[[],[]]", NULL},
    {"[{},[],\"\",0,null]", NULL},
    {"[1,\n2,\r3,\t4]", "[1,2,3,4]"},
    {"[[[[[[[[1]]]]]]]]", NULL},
    /* objects */
    {"{\"a\":1}", NULL},
    {"{ \"a\" : 1 }", "{\"a\":1}"},
    {"{\"a\":1,\"b\":2}", NULL},
    {"{\"b\":1,\"a\":2}", NULL},
    {"{\"\":1}", NULL},
    {"{\"a\":{\"a\":{\"a\":[]}}}", NULL},
    {"{\"a\":[{\"a\":1},{\"a\":2}]}", NULL},
    {"{\"a\":1,\"A\":2,\"\\u00e9\":3,\"e\":4}", NULL},
    {"{\"a\":\"a\",\"b\":\"a\"}", NULL},
    {"{\"a\":true,\"b\":false,\"c\":null}", NULL},
    {"{\"x/y\":1,\"x~y\":2}", NULL},
    {"{\"a\":[],\"b\":{}}", NULL},
    {"{\"__proto__\":1,\"constructor\":2}", NULL},
};

static void
test_json_grammar__accepts(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
		const struct accepted *c = &accepted[i];
		struct json *v = NULL;
		struct buf b = {0};
		struct err e = {0};

		if (json_parse(slice_of(c->text), NULL, &v, NULL, &e) == -1)
			fail_msg("%s: %s", c->text, e.msg);
		json_write(&b, v);
		assert_string_equal(buf_text(&b), c->canonical != NULL ? c->canonical : c->text);
		assert_int_equal(json_encoded_length(v), b.len);
		buf_clear(&b);
		json_unref(v);
	}
}

/* ---- refused: the text, the fault, and where (line 1 if nothing else is said) ---- */

static const struct refused {
	const char *text;
	enum json_fault fault;
	uint32_t column;
	uint32_t line;
} refused[] = {
    /* nothing, or not all of it */
    {"", JSON_FAULT_EMPTY, 1, 1},
    {" ", JSON_FAULT_EMPTY, 1, 1},
    {"\n\n", JSON_FAULT_EMPTY, 1, 1},
    {"[", JSON_FAULT_TRUNCATED, 2, 1},
    {"{", JSON_FAULT_TRUNCATED, 2, 1},
    {"[[", JSON_FAULT_TRUNCATED, 3, 1},
    {"[]\n[", JSON_FAULT_TRAILING, 1, 2},
    {"[1", JSON_FAULT_TRUNCATED, 3, 1},
    {"[1,", JSON_FAULT_TRUNCATED, 4, 1},
    {"[1 ", JSON_FAULT_TRUNCATED, 4, 1},
    {"[\"a", JSON_FAULT_TRUNCATED, 4, 1},
    {"[\"a\"", JSON_FAULT_TRUNCATED, 5, 1},
    {"[\"a\\", JSON_FAULT_TRUNCATED, 5, 1},
    {"[\"a\\\"", JSON_FAULT_TRUNCATED, 6, 1},
    {"[\"\\u12", JSON_FAULT_TRUNCATED, 7, 1},
    {"{\"a", JSON_FAULT_TRUNCATED, 4, 1},
    {"{\"a\"", JSON_FAULT_TRUNCATED, 5, 1},
    {"{\"a\":", JSON_FAULT_TRUNCATED, 6, 1},
    {"{\"a\":1", JSON_FAULT_TRUNCATED, 7, 1},
    {"{\"a\":1,", JSON_FAULT_TRUNCATED, 8, 1},
    {"{\"a\":{}", JSON_FAULT_TRUNCATED, 8, 1},
    {"\"", JSON_FAULT_TRUNCATED, 2, 1},
    {"-", JSON_FAULT_TRUNCATED, 2, 1},
    {"1.", JSON_FAULT_TRUNCATED, 3, 1},
    {"1e", JSON_FAULT_TRUNCATED, 3, 1},
    {"1e+", JSON_FAULT_TRUNCATED, 4, 1},
    {"t", JSON_FAULT_TRUNCATED, 2, 1},
    {"tru", JSON_FAULT_TRUNCATED, 4, 1},
    {"[nul", JSON_FAULT_TRUNCATED, 5, 1},
    /* something behind */
    {"1 2", JSON_FAULT_TRAILING, 3, 1},
    {"{} {}", JSON_FAULT_TRAILING, 4, 1},
    {"[]]", JSON_FAULT_TRAILING, 3, 1},
    {"{}}", JSON_FAULT_TRAILING, 3, 1},
    {"[],", JSON_FAULT_TRAILING, 3, 1},
    {"null,", JSON_FAULT_TRAILING, 5, 1},
    {"\"a\" \"b\"", JSON_FAULT_TRAILING, 5, 1},
    {"\"a\":1", JSON_FAULT_TRAILING, 4, 1},
    {"[] // x", JSON_FAULT_TRAILING, 4, 1},
    {"1\n2", JSON_FAULT_TRAILING, 1, 2},
    /* separators */
    {"[1 2]", JSON_FAULT_SYNTAX, 4, 1},
    {"[1,]", JSON_FAULT_SYNTAX, 4, 1},
    {"[,1]", JSON_FAULT_SYNTAX, 2, 1},
    {"[,]", JSON_FAULT_SYNTAX, 2, 1},
    {"[1,,2]", JSON_FAULT_SYNTAX, 4, 1},
    {"[1:2]", JSON_FAULT_SYNTAX, 3, 1},
    {"[1;2]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"a\":1]", JSON_FAULT_SYNTAX, 5, 1},
    {"[\"a\" \"b\"]", JSON_FAULT_SYNTAX, 6, 1},
    {"[\"a\"\"b\"]", JSON_FAULT_SYNTAX, 5, 1},
    {"[1\"a\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"a\"1]", JSON_FAULT_SYNTAX, 5, 1},
    {"[[][]]", JSON_FAULT_SYNTAX, 4, 1},
    {"[{}{}]", JSON_FAULT_SYNTAX, 4, 1},
    {"[{}[]]", JSON_FAULT_SYNTAX, 4, 1},
    {"{\"a\"}", JSON_FAULT_SYNTAX, 5, 1},
    {"{\"a\",\"b\"}", JSON_FAULT_SYNTAX, 5, 1},
    {"{\"a\":}", JSON_FAULT_SYNTAX, 6, 1},
    {"{\"a\":1,}", JSON_FAULT_SYNTAX, 8, 1},
    {"{,\"a\":1}", JSON_FAULT_SYNTAX, 2, 1},
    {"{\"a\":1,,\"b\":2}", JSON_FAULT_SYNTAX, 8, 1},
    {"{\"a\":1 \"b\":2}", JSON_FAULT_SYNTAX, 8, 1},
    {"{\"a\" 1}", JSON_FAULT_SYNTAX, 6, 1},
    {"{\"a\"::1}", JSON_FAULT_SYNTAX, 6, 1},
    {"{\"a\":1:2}", JSON_FAULT_SYNTAX, 7, 1},
    {"{\"a\":\"b\":\"c\"}", JSON_FAULT_SYNTAX, 9, 1},
    {"{\"a\":1,\"b\"}", JSON_FAULT_SYNTAX, 11, 1},
    {"{:1}", JSON_FAULT_SYNTAX, 2, 1},
    {":1", JSON_FAULT_SYNTAX, 1, 1},
    {",", JSON_FAULT_SYNTAX, 1, 1},
    /* brackets */
    {"]", JSON_FAULT_SYNTAX, 1, 1},
    {"}", JSON_FAULT_SYNTAX, 1, 1},
    {"[1}", JSON_FAULT_SYNTAX, 3, 1},
    {"[}", JSON_FAULT_SYNTAX, 2, 1},
    {"{]", JSON_FAULT_SYNTAX, 2, 1},
    {"{\"a\":1]", JSON_FAULT_SYNTAX, 7, 1},
    {"[{]}", JSON_FAULT_SYNTAX, 3, 1},
    {"{\"a\":[}", JSON_FAULT_SYNTAX, 7, 1},
    /* member names */
    {"{1:2}", JSON_FAULT_SYNTAX, 2, 1},
    {"{null:2}", JSON_FAULT_SYNTAX, 2, 1},
    {"{a:2}", JSON_FAULT_SYNTAX, 2, 1},
    {"{'a':2}", JSON_FAULT_SYNTAX, 2, 1},
    {"{[]:2}", JSON_FAULT_SYNTAX, 2, 1},
    {"{{}:2}", JSON_FAULT_SYNTAX, 2, 1},
    {"{\"a\":1,2:3}", JSON_FAULT_SYNTAX, 8, 1},
    {"{\"a\":1,{}}", JSON_FAULT_SYNTAX, 8, 1},
    /* literals */
    {"True", JSON_FAULT_SYNTAX, 1, 1},
    {"NULL", JSON_FAULT_SYNTAX, 1, 1},
    {"[nil]", JSON_FAULT_SYNTAX, 2, 1},
    {"[truE]", JSON_FAULT_SYNTAX, 5, 1},
    {"[true1]", JSON_FAULT_SYNTAX, 6, 1},
    {"[truefalse]", JSON_FAULT_SYNTAX, 6, 1},
    {"[tru]", JSON_FAULT_SYNTAX, 5, 1},
    {"[undefined]", JSON_FAULT_SYNTAX, 2, 1},
    {"[NaN]", JSON_FAULT_SYNTAX, 2, 1},
    {"[Infinity]", JSON_FAULT_SYNTAX, 2, 1},
    {"[-Infinity]", JSON_FAULT_SYNTAX, 3, 1},
    {"[nan]", JSON_FAULT_SYNTAX, 2, 1},
    {"a", JSON_FAULT_SYNTAX, 1, 1},
    {"'a'", JSON_FAULT_SYNTAX, 1, 1},
    {"[a]", JSON_FAULT_SYNTAX, 2, 1},
    {"['a']", JSON_FAULT_SYNTAX, 2, 1},
    /* numbers */
    {"[01]", JSON_FAULT_SYNTAX, 3, 1},
    {"[00]", JSON_FAULT_SYNTAX, 3, 1},
    {"[-01]", JSON_FAULT_SYNTAX, 4, 1},
    {"[+1]", JSON_FAULT_SYNTAX, 2, 1},
    {"[-]", JSON_FAULT_SYNTAX, 3, 1},
    {"[--1]", JSON_FAULT_SYNTAX, 3, 1},
    {"[1-1]", JSON_FAULT_SYNTAX, 3, 1},
    {"[.5]", JSON_FAULT_SYNTAX, 2, 1},
    {"[-.5]", JSON_FAULT_SYNTAX, 3, 1},
    {"[1.]", JSON_FAULT_SYNTAX, 4, 1},
    {"[1.e1]", JSON_FAULT_SYNTAX, 4, 1},
    {"[1.2.3]", JSON_FAULT_SYNTAX, 5, 1},
    {"[1e]", JSON_FAULT_SYNTAX, 4, 1},
    {"[1e+]", JSON_FAULT_SYNTAX, 5, 1},
    {"[1e1.5]", JSON_FAULT_SYNTAX, 5, 1},
    {"[1e1e1]", JSON_FAULT_SYNTAX, 5, 1},
    {"[0x10]", JSON_FAULT_SYNTAX, 3, 1},
    {"[1_000]", JSON_FAULT_SYNTAX, 3, 1},
    {"[1,5.]", JSON_FAULT_SYNTAX, 6, 1},
    {"[1a]", JSON_FAULT_SYNTAX, 3, 1},
    {"[1\xc3\xa9]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\xef\xbc\x91]", JSON_FAULT_SYNTAX, 2, 1},
    {"1 .5", JSON_FAULT_TRAILING, 3, 1},
    {"[1e999]", JSON_FAULT_NOT_FINITE, 2, 1},
    {"[-1e999]", JSON_FAULT_NOT_FINITE, 2, 1},
    {"1e309", JSON_FAULT_NOT_FINITE, 1, 1},
    {"[1.8e308]", JSON_FAULT_NOT_FINITE, 2, 1},
    {"[0,1e99999999999999999999]", JSON_FAULT_NOT_FINITE, 4, 1},
    /* strings */
    {"[\"\\x\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\a\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\'\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\0\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\U0041\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\u\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\u12\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\u12g4\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"\\u 123\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"ab\\ud800\\u12\"]", JSON_FAULT_SYNTAX, 11, 1},
    {"[\"\t\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"a\nb\"]", JSON_FAULT_SYNTAX, 4, 1},
    {"[\"\x01\"]", JSON_FAULT_SYNTAX, 3, 1},
    {"[\"a\x1f\"]", JSON_FAULT_SYNTAX, 4, 1},
    {"{\"a\tb\":1}", JSON_FAULT_SYNTAX, 4, 1},
    /* UTF-8 */
    {"[\"\xff\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"a\xc3\"]", JSON_FAULT_UTF8, 4, 1},
    {"[\"\xc3(\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xc0\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xc1\xbf\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xe0\x80\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xe2\x82\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xed\xa0\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xed\xbf\xbf\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xf0\x80\x80\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xf4\x90\x80\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xf5\x80\x80\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"[\"\xf8\x88\x80\x80\x80\"]", JSON_FAULT_UTF8, 3, 1},
    {"{\"\xff\":1}", JSON_FAULT_UTF8, 3, 1},
    {"[\"0123456789abcdef\xff\"]", JSON_FAULT_UTF8, 19, 1},
    /* white space, comments, byte order marks */
    {"\xef\xbb\xbf[]", JSON_FAULT_SYNTAX, 1, 1},
    {"\xef\xbb\xbf", JSON_FAULT_SYNTAX, 1, 1},
    {"[]\xef\xbb\xbf", JSON_FAULT_TRAILING, 3, 1},
    {"\xff\xfe[\x01]", JSON_FAULT_SYNTAX, 1, 1},
    {"\f[]", JSON_FAULT_SYNTAX, 1, 1},
    {"[\v]", JSON_FAULT_SYNTAX, 2, 1},
    {"[\xc2\xa0]", JSON_FAULT_SYNTAX, 2, 1},
    {"[1,/**/2]", JSON_FAULT_SYNTAX, 4, 1},
    {"/**/[]", JSON_FAULT_SYNTAX, 1, 1},
    {"# x\n[]", JSON_FAULT_SYNTAX, 1, 1},
    /* the same name twice, also where only unescaping shows it */
    {"{\"a\":1,\"a\":1}", JSON_FAULT_DUPLICATE, 8, 1},
    {"{\"a\":1,\"\\u0061\":2}", JSON_FAULT_DUPLICATE, 8, 1},
    {"{\"\\u0061\":1,\"a\":2}", JSON_FAULT_DUPLICATE, 13, 1},
    {"{\"\":1,\"\":2}", JSON_FAULT_DUPLICATE, 7, 1},
    {"{\"/\":1,\"\\/\":2}", JSON_FAULT_DUPLICATE, 8, 1},
    {"{\"\xc3\xa9\":1,\"\\u00e9\":2}", JSON_FAULT_DUPLICATE, 9, 1},
    {"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", JSON_FAULT_DUPLICATE, 19, 1},
    {"{\"\\ud800\":1,\"\\uD800\":2}", JSON_FAULT_DUPLICATE, 13, 1},
    {"[{\"b\":{\"a\":1,\"a\":1}}]", JSON_FAULT_DUPLICATE, 14, 1},
    {"{\"a\":{\"x\":1},\"b\":[],\"a\":0}", JSON_FAULT_DUPLICATE, 21, 1},
    {"{\"a\":1,\n \"b\":2,\n \"a\":3}", JSON_FAULT_DUPLICATE, 2, 3},
    /* lines */
    {"[\n1,\n2,\n]", JSON_FAULT_SYNTAX, 1, 4},
    {"{\r\n\"a\":1,\r\n\"b\" 2}", JSON_FAULT_SYNTAX, 5, 3},
};

static void
test_json_grammar__refuses(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const struct refused *c = &refused[i];
		struct json_failure f = {.fault = JSON_OK};
		struct json *v = NULL;
		struct err e = {0};
		char where[64];

		if (json_parse(slice_of(c->text), NULL, &v, &f, &e) == 0)
			fail_msg("accepted: %s", c->text);
		if (f.fault != c->fault || f.where.line != c->line || f.where.column != c->column)
			fail_msg("%s: got %s at %u:%u, want %s at %u:%u", c->text,
			    json_fault_name(f.fault), f.where.line, f.where.column,
			    json_fault_name(c->fault), c->line, c->column);
		snprintf(where, sizeof(where), "line %u, column %u: ", c->line, c->column);
		assert_memory_equal(e.msg, where, strlen(where));
		assert_int_equal(e.code, ERR_SYNTAX);
	}
}

/* What is said to people of a text that is no JSON at all, and of one that nearly is. */
static void
test_json_grammar__says_what_was_expected(void **state)
{
	static const char value[] = "line 1, column 1: syntax error: expected a value; a text stands in double quotes";
	static const struct {
		const char *text, *said;
	} cases[] = {
	    {"Here is the plan:\n[]", value},
	    {"this is the plan", value},
	    {"no", value},
	    {"```json\n[]\n```", value},
	    {"- fetch", "line 1, column 2: syntax error: expected a value; a text stands in double quotes"},
	    {"[]\n]", "line 2, column 1: text after the value"},
	    {"[12a]", "line 1, column 4: syntax error: this does not belong in a number"},
	    {"[falsy]", "line 1, column 6: syntax error: expected true, false or null"},
	};
	struct json *v = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = {0};

		assert_int_equal(json_parse(slice_of(cases[i].text), NULL, &v, NULL, &e), -1);
		assert_string_equal(e.msg, cases[i].said);
	}
}

/* A NUL is a byte like any other: it ends nothing. */
static void
test_json_grammar__nul_bytes(void **state)
{
	static const struct {
		struct slice text;
		enum json_fault fault;
	} cases[] = {
	    {{"\0", 1}, JSON_FAULT_SYNTAX},
	    {{"[]\0", 3}, JSON_FAULT_TRAILING},
	    {{"[1\0]", 4}, JSON_FAULT_SYNTAX},
	    {{"[\0]", 3}, JSON_FAULT_SYNTAX},
	    {{"[\"a\0b\"]", 7}, JSON_FAULT_SYNTAX},
	    {{"{\"a\0\":1}", 8}, JSON_FAULT_SYNTAX},
	    {{"42\0", 3}, JSON_FAULT_SYNTAX},
	    {{"[tru\0]", 6}, JSON_FAULT_SYNTAX},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_failure f = {.fault = JSON_OK};
		struct json *v = NULL;

		assert_int_equal(json_parse(cases[i].text, NULL, &v, &f, NULL), -1);
		assert_int_equal(f.fault, cases[i].fault);
	}
}

/* Every cut of a valid text is refused as truncated (or empty), never taken, never misjudged. */
static void
test_json_grammar__every_prefix_is_truncated(void **state)
{
	static const char text[] = "{\"a\":[1.5e3,true,{\"\\u00e9\\n\":\"\\ud83d\\ude00 \xc3\xa9\"}],\"b\":null}";
	size_t n;

	(void)state;
	for (n = 1; n < sizeof(text) - 1; n++) {
		struct json_failure f = {.fault = JSON_OK};
		struct json *v = NULL;

		assert_int_equal(json_parse((struct slice){text, n}, NULL, &v, &f, NULL), -1);
		/* A cut inside the two bytes of a character leaves broken UTF-8 at the end. */
		if (f.fault != JSON_FAULT_TRUNCATED && !((unsigned char)text[n] >= 0x80))
			fail_msg("cut at %zu: %s", n, json_fault_name(f.fault));
	}
}

static void
fill_nested(struct buf *b, const char *open, const char *close, unsigned depth)
{
	unsigned i;

	buf_reset(b);
	for (i = 0; i < depth; i++)
		buf_puts(b, open);
	buf_puts(b, "1");
	for (i = 0; i < depth; i++)
		buf_puts(b, close);
}

static void
test_json_grammar__depth(void **state)
{
	static const struct {
		const char *open, *close;
	} kinds[] = {{"[", "]"}, {"{\"a\":", "}"}};
	struct json_options shallow = {.max_depth = 3};
	struct json_failure f;
	struct json *v = NULL;
	struct buf b = {0};
	struct err e = {0};
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		fill_nested(&b, kinds[i].open, kinds[i].close, 512);
		assert_works(json_parse(buf_view(&b), NULL, &v, NULL, &e), e);
		json_unref(v);
		fill_nested(&b, kinds[i].open, kinds[i].close, 513);
		assert_fails(json_parse(buf_view(&b), NULL, &v, &f, &e), ERR_LIMIT, e);
		assert_int_equal(f.fault, JSON_FAULT_DEPTH);
		assert_int_equal(f.where.offset, 512 * strlen(kinds[i].open));
		fill_nested(&b, kinds[i].open, kinds[i].close, 3);
		assert_works(json_parse(buf_view(&b), &shallow, &v, NULL, &e), e);
		json_unref(v);
		fill_nested(&b, kinds[i].open, kinds[i].close, 4);
		assert_fails(json_parse(buf_view(&b), &shallow, &v, &f, &e), ERR_LIMIT, e);
		fill_nested(&b, kinds[i].open, "", 1000 * 1000);
		assert_fails(json_parse(buf_view(&b), NULL, &v, &f, &e), ERR_LIMIT, e);
	}
	/* An error in front of the depth is told first. */
	fill_nested(&b, "[1 ", "", 600);
	assert_fails(json_parse(buf_view(&b), NULL, &v, &f, &e), ERR_SYNTAX, e);
	assert_int_equal(f.where.column, 4);
	buf_clear(&b);
}

static void
test_json_grammar__size(void **state)
{
	struct json_options o = {.max_bytes = 10};
	struct json_failure f;
	struct json *v = NULL;
	struct err e = {0};

	(void)state;
	assert_works(json_parse(slice_of("[123456  ]"), &o, &v, NULL, &e), e);
	json_unref(v);
	assert_fails(json_parse(slice_of("[123456   ]"), &o, &v, &f, &e), ERR_LIMIT, e);
	assert_int_equal(f.fault, JSON_FAULT_SIZE);
	assert_string_equal(json_fault_name(f.fault), "too_large");
}

/* ---- last one wins ---- */

static void
check_loose(const char *text, const char *unique_top, const char *canonical)
{
	struct json_options o = {.last_wins = true, .unique_top = unique_top};
	struct json_failure f = {.fault = JSON_OK};
	struct json *v = NULL;
	struct buf b = {0};

	if (json_parse(slice_of(text), &o, &v, &f, NULL) == -1) {
		assert_int_equal(f.fault, JSON_FAULT_DUPLICATE);
		assert_null(canonical);
		return;
	}
	json_write(&b, v);
	assert_string_equal(buf_text(&b), canonical);
	buf_clear(&b);
	json_unref(v);
}

static void
test_json_grammar__last_wins(void **state)
{
	(void)state;
	check_loose("{\"a\":1,\"b\":2,\"a\":3}", NULL, "{\"a\":3,\"b\":2}");
	check_loose("{\"a\":[1,{}],\"a\":{\"a\":1,\"a\":[]}}", NULL, "{\"a\":{\"a\":[]}}");
	check_loose("{\"a\":1,\"\\u0061\":2,\"a\":3}", NULL, "{\"a\":3}");
	check_loose("{\"version\":1,\"version\":2}", "version", NULL);
	check_loose("{\"version\":1,\"\\u0076ersion\":2}", "version", NULL);
	check_loose("{\"x\":{\"version\":1,\"version\":2}}", "version", "{\"x\":{\"version\":2}}");
	check_loose("{\"x\":1,\"x\":2,\"version\":2}", "version", "{\"x\":2,\"version\":2}");
}

static void
test_json_grammar__duplicates_in_large_objects(void **state)
{
	static const unsigned sizes[] = {15, 16, 17, 18, 1000, 100000};
	struct json_options loose = {.last_wins = true};
	struct json_failure f;
	struct json *v = NULL;
	size_t i;
	unsigned k;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct buf b = {0};
		size_t before;
		int64_t n = 0;

		buf_puts(&b, "{");
		for (k = 0; k < sizes[i]; k++)
			buf_printf(&b, "\"k%u\":%u,", k, k);
		before = b.len;
		buf_printf(&b, "\"\\u006b%u\":-1}", sizes[i] / 2);
		assert_int_equal(json_parse(buf_view(&b), NULL, &v, &f, NULL), -1);
		assert_int_equal(f.fault, JSON_FAULT_DUPLICATE);
		assert_int_equal(f.where.offset, before);
		assert_int_equal(json_parse(buf_view(&b), &loose, &v, NULL, NULL), 0);
		assert_int_equal(json_length(v), sizes[i]);
		b.len = before - 1;
		buf_puts(&b, "}");
		json_unref(v);
		assert_int_equal(json_parse(buf_view(&b), NULL, &v, &f, NULL), 0);
		assert_int_equal(json_length(v), sizes[i]);
		buf_reset(&b);
		buf_printf(&b, "k%u", sizes[i] - 1);
		assert_true(json_int64(json_get(v, buf_text(&b)), &n));
		assert_int_equal(n, sizes[i] - 1);
		json_unref(v);
		buf_clear(&b);
	}
}

/* ---- positions ---- */

static void
check_position(const struct json *v, uint32_t line, uint32_t column)
{
	struct json_where w;

	assert_true(json_position(v, &w));
	assert_int_equal(w.line, line);
	assert_int_equal(w.column, column);
}

static void
test_json_grammar__positions(void **state)
{
	static const char text[] = "{\n  \"a\": [1, null,\n    true],\n\t\"b\" : {\"c\":\"x\"}}";
	struct json_options o = {.positions = true};
	const struct json *value;
	struct json *v = NULL;
	struct json_iter it;

	(void)state;
	assert_int_equal(json_parse(slice_of(text), &o, &v, NULL, NULL), 0);
	check_position(v, 1, 1);
	check_position(json_get(v, "a"), 2, 8);
	check_position(json_at(json_get(v, "a"), 0), 2, 9);
	check_position(json_at(json_get(v, "a"), 1), 2, 12);
	check_position(json_at(json_get(v, "a"), 2), 3, 5);
	check_position(json_get(json_get(v, "b"), "c"), 4, 13);
	it = json_iterate(v);
	assert_true(json_next(&it, NULL, &value));
	check_position(json_iter_name(&it), 2, 3);
	assert_true(json_next(&it, NULL, &value));
	check_position(json_iter_name(&it), 4, 2);
	json_unref(v);
	assert_int_equal(json_parse(slice_of(text), NULL, &v, NULL, NULL), 0);
	assert_false(json_position(v, &(struct json_where){0}));
	json_unref(v);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_json_grammar__accepts),
    cmocka_unit_test(test_json_grammar__refuses),
    cmocka_unit_test(test_json_grammar__says_what_was_expected),
    cmocka_unit_test(test_json_grammar__nul_bytes),
    cmocka_unit_test(test_json_grammar__every_prefix_is_truncated),
    cmocka_unit_test(test_json_grammar__depth),
    cmocka_unit_test(test_json_grammar__size),
    cmocka_unit_test(test_json_grammar__last_wins),
    cmocka_unit_test(test_json_grammar__duplicates_in_large_objects),
    cmocka_unit_test(test_json_grammar__positions),
};

TEST_MAIN("json_grammar", tests)
