/* Scalars of YAML by the core schema. */
#include <stdlib.h>

#include "yaml_text.h"

#define CORE "tag:yaml.org,2002:"

enum { HEX_DIGITS = 16, OCTAL_DIGITS = 21 };

static bool
is_any(struct slice text, const char *const *words)
{
	for (; *words != NULL; words++)
		if (slice_is(text, *words))
			return true;
	return false;
}

static size_t
digits(struct slice s, size_t from)
{
	size_t i = from;

	while (i < s.len && s.data[i] >= '0' && s.data[i] <= '9')
		i++;
	return i - from;
}

static bool
is_sign(struct slice s)
{
	return s.len > 0 && (s.data[0] == '-' || s.data[0] == '+');
}

static bool
is_decimal(struct slice s)
{
	size_t sign = is_sign(s);

	return s.len > sign && digits(s, sign) == s.len - sign;
}

/* 0o17 and 0x1f, without a sign; *base stays as it is otherwise. */
static bool
is_based(struct slice s, int *base)
{
	const char *allowed = "01234567";
	size_t i;

	if (s.len < 3 || s.data[0] != '0' || (s.data[1] != 'o' && s.data[1] != 'x'))
		return false;
	if (s.data[1] == 'x')
		allowed = "0123456789abcdefABCDEF";
	for (i = 2; i < s.len; i++)
		if (strchr(allowed, s.data[i]) == NULL)
			return false;
	*base = s.data[1] == 'x' ? 16 : 8;
	return true;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool
is_float(struct slice s)
{
	size_t i = is_sign(s), whole, part = 0, exponent;

	whole = digits(s, i);
	i += whole;
	if (i < s.len && s.data[i] == '.') {
		part = digits(s, i + 1);
		i += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (i < s.len && (s.data[i] == 'e' || s.data[i] == 'E')) {
		i++;
		if (i < s.len && (s.data[i] == '-' || s.data[i] == '+'))
			i++;
		exponent = digits(s, i);
		if (exponent == 0)
			return false;
		i += exponent;
	}
	return i == s.len;
}

static bool
is_not_finite(struct slice s)
{
	static const char *const words[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
	    "-.Inf", "-.INF", ".nan", ".NaN", ".NAN", NULL};

	return is_any(s, words);
}

/* JSON's own reader makes the number, so that both syntaxes mean the same by the same digits. */
static int
read_as_json(struct buf *text, struct json **out, struct err *e)
{
	int r = -1;

	if (buf_ok(text, e) == 0 && json_parse(buf_view(text), NULL, out, NULL, e) == 0)
		r = 0;
	else if (e != NULL && e->code != ERR_NOMEM)
		err_set(e, ERR_SYNTAX, "the number %s cannot be represented", buf_text(text));
	buf_clear(text);
	return r;
}

static int
make_decimal(struct slice s, struct json **out, struct err *e)
{
	struct buf b = {0};
	size_t i = is_sign(s);

	while (i + 1 < s.len && s.data[i] == '0')
		i++;
	if (s.data[0] == '-' && !(i + 1 == s.len && s.data[i] == '0'))
		buf_putc(&b, '-');
	buf_add(&b, s.data + i, s.len - i);
	return read_as_json(&b, out, e);
}

static int
make_float(struct slice s, struct json **out, struct err *e)
{
	struct buf b = {0};
	size_t i = is_sign(s), n;

	if (s.data[0] == '-')
		buf_putc(&b, '-');
	while (digits(s, i) > 1 && s.data[i] == '0')
		i++;
	n = digits(s, i);
	buf_add(&b, n > 0 ? s.data + i : "0", n > 0 ? n : 1);
	i += n;
	if (i < s.len && s.data[i] == '.') {
		n = digits(s, ++i);
		buf_putc(&b, '.');
		buf_add(&b, n > 0 ? s.data + i : "0", n > 0 ? n : 1);
		i += n;
	} else {
		buf_puts(&b, ".0");
	}
	buf_add(&b, s.data + i, s.len - i);
	return read_as_json(&b, out, e);
}

static int
make_based(struct slice s, int base, struct json **out, struct err *e)
{
	char copy[HEX_DIGITS + OCTAL_DIGITS + 1];
	size_t n = s.len - 2;

	if (n > (size_t)(base == 16 ? HEX_DIGITS : OCTAL_DIGITS))
		return err_set(e, ERR_SYNTAX, "the number %.*s is too large",
		    (int)(s.len > 40 ? 40 : s.len), s.data);
	memcpy(copy, s.data + 2, n);
	copy[n] = '\0';
	*out = json_uint(strtoull(copy, NULL, base));
	return *out == NULL ? err_nomem(e) : 0;
}

static int
given(struct json *v, struct json **out, struct err *e)
{
	if (v == NULL)
		return err_nomem(e);
	*out = v;
	return 0;
}

static int
make_string(struct slice text, struct json **out, struct err *e)
{
	return given(json_string(text), out, e);
}

static int
not_finite(struct slice text, struct err *e)
{
	err_set(e, ERR_SYNTAX, "%.*s is not a finite number", (int)text.len, text.data);
	return err_advice(e, "put it in quotes if a text is meant");
}

/* 1 when the text has the form of the type whose letter is `want` (or of any, with 0); *out then. */
static int
resolve(struct slice text, char want, struct json **out, struct err *e)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const trues[] = {"true", "True", "TRUE", NULL};
	static const char *const falses[] = {"false", "False", "FALSE", NULL};
	int base, r = -2;

	if ((want == 0 || want == 'n') && is_any(text, nulls))
		r = given(json_null(), out, e);
	else if ((want == 0 || want == 'b') && is_any(text, trues))
		r = given(json_bool(true), out, e);
	else if ((want == 0 || want == 'b') && is_any(text, falses))
		r = given(json_bool(false), out, e);
	else if ((want == 0 || want == 'i') && is_decimal(text))
		r = make_decimal(text, out, e);
	else if ((want == 0 || want == 'i') && is_based(text, &base))
		r = make_based(text, base, out, e);
	else if ((want == 0 || want == 'f') && is_float(text))
		r = make_float(text, out, e);
	else if ((want == 0 || want == 'f') && is_not_finite(text))
		return not_finite(text, e);
	return r == -2 ? 0 : r == 0 ? 1 : -1;
}

static const struct {
	const char *tag;
	char want;
} scalar_tags[] = {{CORE "null", 'n'}, {CORE "bool", 'b'}, {CORE "int", 'i'}, {CORE "float", 'f'}};

static int
tagged(struct slice text, struct slice tag, struct json **out, struct err *e)
{
	size_t i;
	int r;

	if (slice_is(tag, CORE "str") || slice_is(tag, "!"))
		return make_string(text, out, e);
	for (i = 0; i < sizeof(scalar_tags) / sizeof(scalar_tags[0]); i++) {
		if (!slice_is(tag, scalar_tags[i].tag))
			continue;
		r = resolve(text, scalar_tags[i].want, out, e);
		if (r != 0)
			return r < 0 ? -1 : 0;
		return err_set(e, ERR_SYNTAX, "\"%.*s\" does not fit its tag !!%s",
		    (int)(text.len > 40 ? 40 : text.len), text.data,
		    scalar_tags[i].tag + sizeof(CORE) - 1);
	}
	err_set(e, ERR_SYNTAX, "the tag %.*s means nothing here", (int)(tag.len > 80 ? 80 : tag.len),
	    tag.data);
	return err_advice(e, "only the tags of YAML's core schema are known: !!str !!int !!float !!bool "
			   "!!null !!seq !!map");
}

int
yaml_scalar(struct slice text, bool plain, struct slice tag, struct json **out, struct err *e)
{
	int r;

	if (tag.len > 0)
		return tagged(text, tag, out, e);
	if (!plain)
		return make_string(text, out, e);
	r = resolve(text, 0, out, e);
	return r < 0 ? -1 : r == 1 ? 0 : make_string(text, out, e);
}
