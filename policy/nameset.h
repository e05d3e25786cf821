/* SPDX-License-Identifier: Apache-2.0
 *
 * nameset.h - a list of names to deny, up to millions, from a file that others
 * wrote. What a line may be, told apart line by line:
 *
 *   example.com               that name and all below it (at least two labels)
 *   .example.com              the same; .zip is all of a top-level domain
 *   *.example.com             all below it, not the name itself
 *   ||example.com^            Adblock: that name and all below it; of options
 *                             only $all and $important
 *   0.0.0.0 a.example b.test  hosts file: those names, not what is below; an
 *                             unspecified or loopback address
 *
 * U-labels become A-labels. Comments begin with '#' or '!', also behind a line
 * after a blank; [Adblock ...], localhost's own entries in a hosts file and a
 * byte order mark mean nothing. All else (exceptions @@, cosmetic rules,
 * regular expressions, URLs, addresses, bad names) is skipped and counted.
 */
#ifndef POLICY_NAMESET_H
#define POLICY_NAMESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMESET_TEXT_MAX  ((size_t)256 << 20)
#define NAMESET_NAMES_MAX 8000000 /* duplicates included; also of skipped */

struct nameset;

/* What one entry covers: one of these or both. */
enum {
	NAMESET_EXACT = 1, /* the name */
	NAMESET_BELOW = 2, /* every name below it */
};

struct nameset_report {
	size_t names;		     /* held: nameset_count() */
	size_t duplicates;	     /* said before, all of it */
	size_t skipped;		     /* not understood, or not for us */
	uint32_t first_skipped_line; /* from 1; 0: none */
};

/* @name is the part of the host that is listed. */
struct nameset_hit {
	const char *name;
	size_t entry; /* for nameset_line() */
	bool exact;   /* the host itself, not a parent */
};

struct nameset_item {
	const char *name; /* the set owns it */
	uint32_t line;
	uint8_t kind;
};

/* Zero before the first nameset_next(). */
struct nameset_cursor {
	size_t at;
	uint32_t line;
};

/* Builds a set from a copy of what is in @text: @len bytes, neither terminated
 * nor trusted. *@ret_report is filled in whatever is returned.
 *
 * Returns 0 and a set the caller owns (empty if there are but comments), or
 * -EINVAL if something was skipped and no name is left (an error page is no
 * list), -EFBIG, -ENOMEM, or -EIO without random numbers. */
int nameset_new(const char *text, size_t len, struct nameset **ret_set,
		struct nameset_report *ret_report);
/* NULL is fine. */
void nameset_free(struct nameset *set);

/* Is @host, which is canonical, listed? The name itself first, then from its
 * longest parent to its shortest. What is compared is a hash with a random key
 * of ours: a listed name is always found; in 10^12 look-ups of others one may
 * be taken for a listed name, which nobody can choose, and is denied. */
bool nameset_find(const struct nameset *set, const char *host,
		  struct nameset_hit *ret_hit);
/* The line that says so. Apart, as memory has to be waited for once more. */
uint32_t nameset_line(const struct nameset *set, const struct nameset_hit *hit);

/* Entries: a name may have two, one of each kind. */
size_t nameset_count(const struct nameset *set);
/* Bytes held, all of them. */
size_t nameset_memory(const struct nameset *set);
/* The next entry, in the file's order; false at the end. */
bool nameset_next(const struct nameset *set, struct nameset_cursor *cursor,
		  struct nameset_item *ret_item);

#endif
