/* SPDX-License-Identifier: Apache-2.0
 *
 * What an attacker wrote to the sheet of `sallyport prove`: any bytes. Each
 * attack gets a result, a hole is never called held because of a text, and what
 * is shown is one line of plain text for each, and JSON.
 */
#include "cmd/prove.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct prove_sheet sheet;
static struct prove_verdict verdict;
static const struct prove_about about = {
	.what = "box", .log = "", .receipt = "", .reported = ""
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static char *printed(bool json, size_t *ret_len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_len);

	must(out != NULL);
	if (json)
		prove_print_json(out, &verdict, &about);
	else
		prove_print(out, &verdict, &about, false);
	fclose(out);
	return text;
}

static void check_table(void)
{
	size_t len, lines = 0;
	char *text = printed(false, &len);

	for (size_t i = 0; i < len; i++) {
		lines += text[i] == '\n';
		must(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
	}
	must(lines == verdict.n + 2);
	free(text);
}

static void check_json(void)
{
	size_t len;
	char *text = printed(true, &len);
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);

	must(json_array_size(json_object_get(root, "attacks")) == verdict.n);
	json_decref(root);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct prove_evidence evidence = { .log = NULL };
	unsigned out = 0, n = 0;

	if (size > sizeof(sheet.result))
		size = sizeof(sheet.result);
	memset(&sheet, 0, sizeof(sheet));
	memcpy(sheet.result, data, size);
	prove_judge(&sheet, &evidence, &verdict);
	must(verdict.n > 1 && verdict.n <= PROVE_MAX);
	for (size_t i = 0; i < verdict.n - 1; i++)
		out += sheet.result[i].seen == PROVE_OUT;
	must(verdict.count[ATTACK_GOT_OUT] == out);
	for (unsigned i = 0; i < ATTACK_RESULTS; i++)
		n += verdict.count[i];
	must(n == verdict.n);
	if (size % 16) /* printing takes the most of the time */
		return 0;
	check_table();
	check_json();
	return 0;
}
