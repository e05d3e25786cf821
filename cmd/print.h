/* SPDX-License-Identifier: Apache-2.0
 *
 * print.h - what commands about policies print: text without what terminals
 * obey, and JSON piece by piece.
 */
#ifndef CMD_PRINT_H
#define CMD_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/json.h"

/* What a line says, in colours where @out is a terminal and wants them. */
enum tone { TONE_PLAIN, TONE_GOOD, TONE_WARNING, TONE_BAD, TONE_FAINT };

/* Controls and text-direction marks in what is printed become '?'; '\n' only in
 * @format stays one. */
void print_text(FILE *out, enum tone tone, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A JSON text of any length on stdout: json_flush() after each small piece. */
struct json_out {
	struct json json;
	char buf[131072]; /* a target, its path and a place, all escaped */
};
void json_out_init(struct json_out *out);
/* False if the piece was too large, and is lost. */
bool json_flush(struct json_out *out);

/* Splits "policy.yaml:12" or "policy.yaml:12:5: text": into "file", "line",
 * "column" (where there is one) and, in @ret_rest if it is not NULL, the text.
 */
void json_place(struct json *j, const char *place, const char **ret_rest);

/* @status, the last thing of a command: what it said has to be there, or it
 * failed. */
int print_end(int status);

#endif
