/* SPDX-License-Identifier: Apache-2.0
 *
 * list_text.h - made-up lists of names with two to four labels, of the lengths
 * that real lists have, the same each time.
 */
#ifndef TESTS_POLICY_LIST_TEXT_H
#define TESTS_POLICY_LIST_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST_NAME_MAX 64

/* splitmix64: name @i is a function of @i. */
static inline uint64_t list_random(uint64_t i)
{
	i = (i + 1) * 0x9e3779b97f4a7c15u;
	i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
	i = (i ^ i >> 27) * 0x94d049bb133111ebu;
	return i ^ i >> 31;
}

/* @ret_name holds LIST_NAME_MAX bytes. The number in it makes it unique; 'z'
 * stands before no other. Returns its length. */
static inline size_t list_name(uint64_t i, char *ret_name)
{
	static const char word[16][12] = {
		"track",  "ads",   "metrics", "cdn",	"shop",	 "pixel",
		"banner", "stats", "login",   "secure", "click", "mail",
		"app",	  "media", "data",    "news",
	};
	static const char sub[8][8] = { "www.", "a.",  "static.", "img.",
					"eu.",	"s1.", "m.",	  "edge." };
	uint64_t r = list_random(i);
	const char *first = r & 1 ? sub[r >> 8 & 7] : "";
	const char *second = (r & 6) == 0 ? sub[r >> 16 & 7] : "";

	return (size_t)snprintf(ret_name, LIST_NAME_MAX, "%s%s%s%llxz.%s",
				first, second, word[r >> 24 & 15],
				(unsigned long long)i,
				r >> 32 & 3 ? "test" : "example");
}

/* A list of the names from 0 to @count; the caller frees it. */
static inline char *list_text(uint64_t count, size_t *ret_len)
{
	char *text = malloc(count * LIST_NAME_MAX + 1);
	size_t len = 0;

	for (uint64_t i = 0; text && i < count; i++) {
		len += list_name(i, text + len);
		text[len++] = '\n';
	}
	*ret_len = len;
	return text;
}

#endif
