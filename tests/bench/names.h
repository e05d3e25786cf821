/* SPDX-License-Identifier: Apache-2.0
 *
 * names.h - names that a load asks for in turn: qNNNNNN.nMMMMMM.ZONE. N goes
 * through @count; M follows from it and spreads them over @spread parents, far
 * from each other.
 */
#ifndef TESTS_BENCH_NAMES_H
#define TESTS_BENCH_NAMES_H

#include <stdio.h>
#include <string.h>

#define NAMES_LABEL 7 /* q or n, and six digits */

struct names {
	unsigned long count, spread;
};

static inline void names_digits(char *at, unsigned long n)
{
	for (int i = NAMES_LABEL - 1; i > 0; i--, n /= 10)
		at[i] = (char)('0' + n % 10);
}

/* Writes the digits of name @i into "q......Xn......". */
static inline void names_put(const struct names *names, char *at,
			     unsigned long i)
{
	i %= names->count;
	names_digits(at, i);
	names_digits(at + NAMES_LABEL + 1, i * 2654435761u % names->spread);
}

/* Where that is in a text; NULL: nowhere. */
static inline char *names_find(char *text, size_t len)
{
	static const char first[] = "q000000.n000000.";

	return memmem(text, len, first, sizeof(first) - 1);
}

#endif
