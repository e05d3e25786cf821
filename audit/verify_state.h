/* SPDX-License-Identifier: Apache-2.0
 *
 * verify_state.h - one verification on its way: what verify*.c share. Not for
 * others.
 */
#ifndef AUDIT_VERIFY_STATE_H
#define AUDIT_VERIFY_STATE_H

#include <stdio.h>

#include "audit/record.h"
#include "audit/verify.h"
#include "audit/verify_line.h"
#include "audit/verify_read.h"

struct verify_place {
	char file[LOG_DIR_NAME_MAX];
	uint64_t line;
};

/* A line with a number that is not the one expected. What happened only the
 * next line tells. */
struct verify_odd {
	bool set, known; /* !known: no record at all, which was said */
	struct verify_place at;
	uint64_t number, expected;
	bool follows; /* and yet its `prev` is the line before */
};

struct verify_notes {
	FILE *file;
	uint64_t left, line; /* bytes to read; lines read */
	bool missing, ended;
	bool has_next; /* read and signed, not yet reached */
	struct checkpoint next, last;
	uint64_t next_line;		/* where it begins in the file */
	char text[CHECKPOINT_NOTE_MAX]; /* of .next */
	uint64_t count;			/* of those that are signed */
	bool bad;			/* one of them, or the file */
};

struct verify_receipt {
	bool present;
	char name[64];
	char *data; /* until the key is known */
	size_t len;
	struct json_t *statement;    /* NULL if it is not good */
	struct verify_problem fault; /* .fault is VERIFY_FINE if there is none;
					told when all lines have been */
};

struct verify {
	const struct verify_options *options;
	struct verify_result *result;
	int dirfd;
	char session[64];
	bool has_key;
	struct vkey key;
	struct verify_reader reader;

	/* Records. */
	struct merkle tree;
	struct merkle_hash before; /* the leaf of the line before */
	bool has_before;
	struct verify_place before_at;
	uint64_t expected;
	uint64_t by_reason[REASON_COUNT]; /* of the refused */
	struct verify_odd odd;
	unsigned unsettled; /* lines whose `prev` does not count, after an odd
			       one */
	bool foreign;	    /* the line before was of another session */
	bool tree_bad;	    /* roots can't fit any more */
	bool after_the_end;

	/* The first record that no good checkpoint covers. */
	bool wants_uncovered;
	struct verify_place uncovered;

	/* The first root that did not fit. */
	struct {
		bool set;
		size_t problem;		 /* its index */
		uint64_t from, to, line; /* records; of the checkpoint */
	} root;

	struct verify_notes notes;
	bool has_kept;
	struct checkpoint kept;
	char kept_name[64];
	struct verify_receipt receipt;
};

/* Adds a problem; one a line. */
void verify_say(struct verify *v, enum verify_fault fault, const char *file,
		uint64_t line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void verify_say_in(struct verify_problem *ret, enum verify_fault fault,
		   const char *file, uint64_t line, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* verify_key.c: whose log it is, and which key it should be signed with. */
void verify_find_key(struct verify *v);

/* verify_lines.c */
void verify_take_line(struct verify *v, struct text line);
void verify_take_long(struct verify *v);
void verify_end_lines(struct verify *v);

/* verify_notes.c. Opening comes before the records are read: a checkpoint then
 * speaks of no record that is not there yet. */
int verify_open_notes(struct verify *v);
/* The first one's text as it is, in @ret_text; false if there is none. */
bool verify_peek_note(struct verify *v, char ret_text[CHECKPOINT_NOTE_MAX]);
void verify_begin_notes(struct verify *v); /* the key is known now */
void verify_meet_notes(struct verify *v);  /* after each record */
void verify_end_notes(struct verify *v);
void verify_close_notes(struct verify *v);
int verify_open_kept(struct verify *v, const char *path);

/* verify_receipt.c */
int verify_open_receipt(struct verify *v);
void verify_begin_receipt(struct verify *v);
void verify_end_part(struct verify *v);
void verify_end_receipt(struct verify *v);
void verify_close_receipt(struct verify *v);

#endif
