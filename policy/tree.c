/* SPDX-License-Identifier: Apache-2.0
 *
 * tree.c - libyaml's events, one at a time: a text is given up at the first
 * event that does not belong, so depth and size are ours to limit.
 */
#include "policy/tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"

#define DEPTH_MAX 8
#define NODES_MAX 120000

struct builder {
	yaml_parser_t parser;
	const char *text;
	size_t len;
	const struct source *source;
	struct node *root;
	struct node *open[DEPTH_MAX];
	size_t depth, nodes, documents;
};

int source_fault(const struct source *source, unsigned line, unsigned column,
		 const char *fmt, ...)
{
	char what[sizeof(source->err->text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/* What a long path pushes out of the text is the end of the hint. */
	if (snprintf(source->err->text, sizeof(source->err->text),
		     "%.200s:%u:%u: %s", source->origin, line, column,
		     what) < 0)
		source->err->text[0] = '\0';
	text_clean(source->err->text);
	return -EINVAL;
}

static int fault_at(const struct builder *b, const yaml_mark_t *mark,
		    const char *what)
{
	return source_fault(b->source, (unsigned)mark->line + 1,
			    (unsigned)mark->column + 1, "%s", what);
}

/* libyaml gives a byte offset where the text is not even characters. */
static int reader_fault(const struct builder *b)
{
	unsigned line = 1, column = 1;

	for (size_t i = 0; i < b->parser.problem_offset && i < b->len; i++) {
		unsigned char c = (unsigned char)b->text[i];

		if (c == '\n') {
			line++;
			column = 1;
		} else if ((c & 0xc0) != 0x80) {
			column++;
		}
	}
	return source_fault(b->source, line, column,
			    "%s, a policy is plain UTF-8 text",
			    b->parser.problem);
}

static const char *syntax_hint(const struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	size_t at = p->problem_mark.index;

	if (p->context && strstr(p->context, "alias"))
		return ", quote a wildcard: \"*.example.com\"";
	/* The index counts characters, the text has bytes: a hint at most. */
	if (at < b->len && b->text[at] == '\t')
		return ", indent with spaces, not with tabs";
	return ", check indentation, quotes and colons";
}

static int parser_fault(const struct builder *b)
{
	const yaml_parser_t *p = &b->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (p->error == YAML_READER_ERROR)
		return reader_fault(b);
	return source_fault(
		b->source, (unsigned)p->problem_mark.line + 1,
		(unsigned)p->problem_mark.column + 1, "not YAML: %s%s%s%s",
		p->context ? p->context : "", p->context ? ", " : "",
		p->problem ? p->problem : "unreadable", syntax_hint(b));
}

void tree_free(struct node *root)
{
	while (root) {
		struct node *next = root->owned;

		free(root->text);
		free(root);
		root = next;
	}
}

static int add_node(struct builder *b, enum node_kind kind,
		    const yaml_mark_t *mark, struct node **ret_node)
{
	struct node *node, *parent;

	if (++b->nodes > NODES_MAX)
		return fault_at(
			b, mark,
			"too many entries, use wildcards, or lists under 'deny'");
	node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->kind = kind;
	node->line = (unsigned)mark->line + 1;
	node->column = (unsigned)mark->column + 1;
	if (!b->root) {
		b->root = node;
	} else {
		node->owned = b->root->owned;
		b->root->owned = node;
	}
	if (b->depth) {
		parent = b->open[b->depth - 1];
		if (parent->last_child)
			parent->last_child->next = node;
		else
			parent->child = node;
		parent->last_child = node;
	}
	*ret_node = node;
	return 0;
}

static int add_scalar(struct builder *b, const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	struct node *node;
	int ret;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)value[i];

		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			return fault_at(b, &event->start_mark,
					"a control character in a text");
	}
	ret = add_node(b, NODE_SCALAR, &event->start_mark, &node);
	if (ret < 0)
		return ret;
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->text = strndup(value, len);
	return node->text ? 0 : -ENOMEM;
}

static int open_node(struct builder *b, enum node_kind kind,
		     const yaml_event_t *event)
{
	struct node *node;
	int ret;

	if (b->depth == DEPTH_MAX)
		return fault_at(b, &event->start_mark, "nested too deeply");
	ret = add_node(b, kind, &event->start_mark, &node);
	if (ret < 0)
		return ret;
	b->open[b->depth++] = node;
	return 0;
}

static int check_extras(struct builder *b, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor)
		return fault_at(b, &event->start_mark,
				"anchors (&) are not used in policies, write "
				"it out");
	if (tag)
		return fault_at(b, &event->start_mark,
				"tags (!) are not used in policies, quote a "
				"text that starts with '!'");
	return 0;
}

static int take_event(struct builder *b, const yaml_event_t *event)
{
	int ret = check_extras(b, event);

	if (ret < 0)
		return ret;
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++)
			return fault_at(b, &event->start_mark,
					"a second document, a policy is one");
		return 0;
	case YAML_ALIAS_EVENT:
		return fault_at(b, &event->start_mark,
				"aliases (*) are not used in policies, quote "
				"a wildcard: \"*.example.com\"");
	case YAML_SCALAR_EVENT:
		return add_scalar(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_node(b, NODE_LIST, event);
	case YAML_MAPPING_START_EVENT:
		return open_node(b, NODE_MAP, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

static int build(struct builder *b)
{
	yaml_event_t event;
	bool last = false;
	int ret = 0;

	while (!last && ret == 0) {
		if (!yaml_parser_parse(&b->parser, &event))
			return parser_fault(b);
		last = event.type == YAML_STREAM_END_EVENT;
		ret = take_event(b, &event);
		yaml_event_delete(&event);
	}
	return ret;
}

int tree_parse(const char *text, size_t len, const struct source *source,
	       struct node **ret_root)
{
	struct builder b = { .text = text, .len = len, .source = source };
	int ret;

	if (!yaml_parser_initialize(&b.parser))
		return -ENOMEM;
	/* Told, not guessed: UTF-16 is refused as bad UTF-8. */
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	/* Then nobody looks for a byte order mark either. */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		b.text = text += 3;
		b.len = len -= 3;
	}
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text,
				     len);
	ret = build(&b);
	yaml_parser_delete(&b.parser);
	if (ret < 0) {
		tree_free(b.root);
		return ret;
	}
	*ret_root = b.root;
	return 0;
}

static bool is_one_of(const char *text, const char *const list[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(text, list[i]) == 0)
			return true;
	return false;
}

bool node_is_null(const struct node *node)
{
	return node->kind == NODE_SCALAR && node->plain &&
	       (!*node->text || strcmp(node->text, "~") == 0 ||
		strcasecmp(node->text, "null") == 0);
}

/* As YAML 1.1 reads plain scalars, which is what surprises people. */
const char *node_type(const struct node *node)
{
	static const char *const boolean[] = { "true", "false", "yes",
					       "no",   "on",	"off" };

	if (node->kind == NODE_LIST)
		return "a list";
	if (node->kind == NODE_MAP)
		return "a mapping";
	if (node_is_null(node))
		return "nothing";
	if (!node->plain)
		return "a text";
	/* Most texts are neither: said without looking at each word. */
	if (strlen(node->text) <= 5 &&
	    is_one_of(node->text, boolean,
		      sizeof(boolean) / sizeof(boolean[0])))
		return "a boolean (quote it if it is a text)";
	if (node->text[strspn(node->text, "0123456789")] == '\0')
		return "a number";
	return "a text";
}
