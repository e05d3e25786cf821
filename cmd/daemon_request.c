/* SPDX-License-Identifier: Apache-2.0
 *
 * daemon_request.c - jansson makes a tree; a table says which keys each kind of
 * request has, and a function each what their values are.
 *
 * A policy is only copied here. Text becomes a bundle of one part, whose files
 * are looked for in that bundle and nowhere else: the daemon opens no path for
 * a user.
 */
#include "cmd/daemon_request.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/base64.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/daemon_request_attacks.h"
#include "policy/words.h"

#define TIMEOUT_MAX_S (365 * 86400)
#define POLICY_ORIGIN "policy"
/* Of values, of all kinds: far more than any request has, and few enough for a
 * tree. The longest body could have tens of millions. */
#define VALUES_MAX 1000

struct reader {
	struct request *request;
	struct request_error *err;
};

static int __attribute__((format(printf, 3, 4)))
fault(struct request_error *err, const char *hint, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(err->error, sizeof(err->error), format, ap);
	va_end(ap);
	text_clean(err->error);
	snprintf(err->hint, sizeof(err->hint), "%s", hint);
	return -EINVAL;
}

/* --- values -------------------------------------------------------------- */

static int copy(struct request_error *err, const char *key, const json_t *value,
		char *buf, size_t cap)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (!text || !len)
		return fault(err, "", "'%s' is a text", key);
	if (len >= cap || strlen(text) != len)
		return fault(err, "", "'%s' has at most %zu bytes, and no NUL",
			     key, cap - 1);
	memcpy(buf, text, len + 1);
	return 0;
}

static int take_name(struct reader *r, const json_t *value)
{
	return copy(r->err, "name", value, r->request->name,
		    sizeof(r->request->name));
}

static int take_policy_name(struct reader *r, const json_t *value)
{
	return copy(r->err, "policy_name", value, r->request->policy_name,
		    sizeof(r->request->policy_name));
}

static int take_policy_text(struct reader *r, const json_t *value)
{
	int ret = copy(r->err, "policy_text", value, r->request->policy_text,
		       sizeof(r->request->policy_text));

	text_clean(r->request->policy_text);
	return ret;
}

static int take_policy(struct reader *r, const json_t *value)
{
	struct request *request = r->request;

	if (!json_is_string(value))
		return fault(r->err, "", "'policy' is a text: YAML");
	if (json_string_length(value) > REQUEST_POLICY_MAX) {
		fault(r->err,
		      "long lists go into files that it denies by, in "
		      "a bundle",
		      "'policy' is longer than %zu bytes", REQUEST_POLICY_MAX);
		return -EFBIG;
	}
	if (request->has_bundle)
		return 0; /* said by check_policy() */
	request->has_bundle = true;
	return bundle_add(&request->bundle, BUNDLE_FILE, POLICY_ORIGIN,
			  json_string_value(value), json_string_length(value));
}

static int take_bundle(struct reader *r, const json_t *value)
{
	struct request *request = r->request;
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (!text)
		return fault(r->err, "", "'bundle' is a text: base64");
	if (len / 4 * 3 > REQUEST_BUNDLE_MAX) {
		fault(r->err, "", "'bundle' is longer than %zu bytes",
		      REQUEST_BUNDLE_MAX);
		return -EFBIG;
	}
	if (request->has_bundle)
		return 0;
	request->has_bundle = true;
	request->bundle.data = malloc(len / 4 * 3 + 1);
	if (!request->bundle.data)
		return -ENOMEM;
	if (base64_decode(text, len, request->bundle.data, len / 4 * 3 + 1,
			  &request->bundle.len) < 0)
		return fault(r->err, "the standard alphabet, padded with '='",
			     "'bundle' is not base64");
	return 0;
}

static int take_timeout(struct reader *r, const json_t *value)
{
	json_int_t s = json_integer_value(value);

	if (!json_is_integer(value) || s < 1 || s > TIMEOUT_MAX_S)
		return fault(r->err, "",
			     "'timeout_s' is a whole number of seconds, from 1 "
			     "to %d",
			     TIMEOUT_MAX_S);
	r->request->timeout_s = (uint32_t)s;
	return 0;
}

static int take_temporary(struct reader *r, const json_t *value)
{
	if (!json_is_boolean(value))
		return fault(r->err, "", "'temporary' is true or false");
	r->request->temporary = json_is_true(value);
	return 0;
}

static int take_command(struct reader *r, const json_t *value)
{
	int ret = copy(r->err, "command", value, r->request->command,
		       sizeof(r->request->command));

	text_clean(r->request->command);
	return ret;
}

static int take_status(struct reader *r, const json_t *value)
{
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < 0 || n > UINT8_MAX)
		return fault(r->err, "", "'status' is a number from 0 to 255");
	r->request->status = (uint8_t)n;
	return 0;
}

static int take_ended(struct reader *r, const json_t *value)
{
	static const char *const words[] = { [ENDED_EXIT] = "exit",
					     [ENDED_TIMEOUT] = "timeout",
					     [ENDED_SIGNAL] = "signal",
					     [ENDED_FAILED] = "failed" };
	const char *text = json_string_value(value);

	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++) {
		if (strcmp(words[i], text) != 0)
			continue;
		r->request->ended = (enum ended_by)i;
		return 0;
	}
	return fault(r->err, "exit, timeout, signal or failed",
		     "'ended' is none of the words for that");
}

static struct daemon_publish *publish_of(struct reader *r)
{
	return &r->request->publish[r->request->publishes];
}

static int take_address(struct reader *r, const json_t *value)
{
	char text[IP_TEXT_MAX];
	int ret = copy(r->err, "address", value, text, sizeof(text));

	if (ret == 0 && !ip_parse(text, &publish_of(r)->at.ip))
		return fault(r->err, "127.0.0.1, say",
			     "'address' is no address");
	return ret;
}

static int port(struct reader *r, const char *key, const json_t *value,
		uint16_t *ret)
{
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value) || n < 1 || n > UINT16_MAX)
		return fault(r->err, "", "'%s' is a number from 1 to 65535",
			     key);
	*ret = (uint16_t)n;
	return 0;
}

static int take_port(struct reader *r, const json_t *value)
{
	return port(r, "port", value, &publish_of(r)->at.port);
}

static int take_inside(struct reader *r, const json_t *value)
{
	return port(r, "inside", value, &publish_of(r)->inside);
}

/* --- objects ------------------------------------------------------------- */

static int take_publish(struct reader *r, const json_t *value);

struct key {
	const char *name;
	int (*take)(struct reader *r, const json_t *value);
};

static const struct key create_keys[] = {
	{ "name", take_name },
	{ "policy", take_policy },
	{ "bundle", take_bundle },
	{ "policy_name", take_policy_name },
	{ "policy_text", take_policy_text },
	{ "timeout_s", take_timeout },
	{ "publish", take_publish },
	{ "temporary", take_temporary },
};
static const struct key policy_keys[] = {
	{ "policy", take_policy },
	{ "bundle", take_bundle },
	{ "policy_name", take_policy_name },
	{ "policy_text", take_policy_text },
};
static const struct key exec_keys[] = { { "command", take_command } };
static const struct key end_keys[] = {
	{ "status", take_status },
	{ "ended", take_ended },
};
static const struct key publish_keys[] = {
	{ "address", take_address },
	{ "port", take_port },
	{ "inside", take_inside },
};

static int unknown(struct request_error *err, const char *word,
		   const struct key *keys, size_t n)
{
	const char *names[ARRAY_SIZE(create_keys)], *guess;
	char shown[WORD_SHOWN_MAX], all[160], hint[256];

	for (size_t i = 0; i < n; i++)
		names[i] = keys[i].name;
	guess = word_guess(word, names, n);
	if (guess)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", guess);
	else
		snprintf(hint, sizeof(hint), "the keys here are %s",
			 word_join(names, n, all, sizeof(all)));
	return fault(err, hint, "unknown key %s",
		     word_show(word, strlen(word), shown));
}

static int take_object(struct reader *r, json_t *object, const struct key *keys,
		       size_t n)
{
	const char *word;
	json_t *value;
	int ret = 0;

	if (!json_is_object(object))
		return fault(r->err, "", "it is not a JSON object");
	json_object_foreach(object, word, value)
	{
		size_t i = 0;

		while (i < n && strcmp(keys[i].name, word) != 0)
			i++;
		ret = i < n ? keys[i].take(r, value)
			    : unknown(r->err, word, keys, n);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int take_one_publish(struct reader *r, json_t *object)
{
	struct daemon_publish *publish = publish_of(r);
	int ret;

	*publish = (struct daemon_publish){ 0 };
	ret = take_object(r, object, publish_keys, ARRAY_SIZE(publish_keys));
	if (ret < 0)
		return ret;
	if (!publish->at.port || !publish->inside)
		return fault(r->err, "",
			     "'port' and 'inside' of what is published are "
			     "missing");
	if (!publish->at.ip.len)
		ip_parse("127.0.0.1", &publish->at.ip);
	r->request->publishes++;
	return 0;
}

static int take_publish(struct reader *r, const json_t *value)
{
	json_t *one;
	size_t i;
	int ret = 0;

	if (!json_is_array(value))
		return fault(r->err, "", "'publish' is a list");
	if (json_array_size(value) > DAEMON_PUBLISH_MAX)
		return fault(r->err, "", "at most %d ports are published",
			     DAEMON_PUBLISH_MAX);
	json_array_foreach(value, i, one)
	{
		ret = take_one_publish(r, one);
		if (ret < 0)
			break;
	}
	return ret;
}

/* --- requests ------------------------------------------------------------ */

/* One of three, at most (none: the operator's default). */
static int check_policy(struct reader *r, const json_t *root)
{
	int n = !!json_object_get(root, "policy") +
		!!json_object_get(root, "bundle") +
		!!json_object_get(root, "policy_name");

	if (n > 1)
		return fault(r->err, "several files are one bundle",
			     "'policy', 'bundle' and 'policy_name' are three "
			     "ways to say one thing: use one");
	return 0;
}

/* Before anything is allocated for them: what begins or separates values,
 * outside of texts. */
static bool has_too_many_values(const char *body, size_t len)
{
	bool in_text = false;
	size_t n = 0;

	for (size_t i = 0; i < len && n <= VALUES_MAX; i++) {
		const char c = body[i];

		if (in_text && c == '\\')
			i++;
		else if (c == '"')
			in_text = !in_text;
		else if (!in_text && (c == '[' || c == '{' || c == ','))
			n++;
	}
	return n > VALUES_MAX;
}

static int take_exec(struct reader *r, json_t *root)
{
	int ret = take_object(r, root, exec_keys, ARRAY_SIZE(exec_keys));

	if (ret == 0 && !*r->request->command)
		return fault(r->err, "", "'command' is missing");
	return ret;
}

static int take_root(struct reader *r, enum request_kind kind, json_t *root)
{
	int ret;

	if (kind == REQUEST_PUBLISH)
		return take_one_publish(r, root);
	if (kind == REQUEST_EXEC)
		return take_exec(r, root);
	if (kind == REQUEST_ATTACKS)
		return request_attacks(root, &r->request->attacks, r->err);
	if (kind == REQUEST_END)
		return take_object(r, root, end_keys, ARRAY_SIZE(end_keys));
	ret = check_policy(r, root);
	if (ret < 0)
		return ret;
	if (kind == REQUEST_POLICY)
		return take_object(r, root, policy_keys,
				   ARRAY_SIZE(policy_keys));
	ret = take_object(r, root, create_keys, ARRAY_SIZE(create_keys));
	if (ret == 0 && !*r->request->name)
		return fault(r->err, "", "'name' is missing");
	return ret;
}

int request_parse(enum request_kind kind, const char *body, size_t len,
		  struct request *ret, struct request_error *reterr)
{
	struct request request = { 0 };
	struct reader r = { .request = &request, .err = reterr };
	json_error_t why;
	json_t *root;
	int err = -ENOMEM;

	*reterr = (struct request_error){ "out of memory", "" };
	if (has_too_many_values(body, len)) {
		fault(reterr, "", "a request has at most %d values",
		      VALUES_MAX);
		return -EFBIG;
	}
	if (!len)
		return fault(reterr, "", "there is no body");
	errno = 0; /* jansson does not always tell */
	root = json_loadb(body, len, JSON_REJECT_DUPLICATES, &why);
	if (root)
		err = take_root(&r, kind, root);
	else if (errno != ENOMEM)
		err = fault(reterr, "", "not JSON: line %d, column %d: %s",
			    why.line, why.column, why.text);
	json_decref(root);
	if (err) {
		request_free(&request);
		return err;
	}
	*ret = request;
	return 0;
}

void request_free(struct request *request)
{
	bundle_free(&request->bundle);
}
