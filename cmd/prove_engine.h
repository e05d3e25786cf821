/* SPDX-License-Identifier: Apache-2.0
 *
 * prove_engine.h - a container engine, by its HTTP API (Docker's), as far as
 * `prove` needs it; and the image that it is given.
 */
#ifndef CMD_PROVE_ENGINE_H
#define CMD_PROVE_ENGINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct prove_sheet;

#define ENGINE_SOCKET "/var/run/docker.sock"

struct engine {
	const char *socket;
};

/* Is @name one that is itself in a path? */
bool engine_name(const char *name);

struct engine_call {
	const char *method;
	const char *path, *id, *more; /* one after the other; or NULL */
	const json_t *body;	      /* NULL: none */
};

/* An answer of 2xx as JSON, an empty object if it is none, for the caller to
 * decref; NULL and a sentence. */
json_t *engine_ask(const struct engine *engine, const struct engine_call *call,
		   char *why, size_t cap);
/* The same; dies where there is no such answer. */
json_t *engine_want(const struct engine *engine,
		    const struct engine_call *call);
/* By force. @what: "/containers/", "/images/". */
void engine_remove(const struct engine *engine, const char *what,
		   const char *id);

/* A tar of this program, its libraries, and a sheet. */
struct image {
	char *data;
	size_t len, cap;
	char loader[64]; /* file name of the dynamic loader; "": it is static */
};

/* 0 or -errno. */
int image_make(const struct prove_sheet *sheet, struct image *ret);
void image_free(struct image *image);
/* The command `prove-inside @word` in it: an array, or NULL. */
json_t *image_command(const struct image *image, const char *word);

/* Both die where they can't. */
void engine_import(const struct engine *engine, const struct image *image,
		   char *ret_id, size_t cap);
void engine_copy_sheet(const struct engine *engine, const char *id,
		       struct prove_sheet *ret);

#endif
