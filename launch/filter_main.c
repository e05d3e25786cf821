/* SPDX-License-Identifier: Apache-2.0
 *
 * filter_main.c - the program that writes filters.inc while sallyport is built.
 *
 * libseccomp takes more than a millisecond for each of our filters, and they
 * are the same every time. So it works once, here, for the architecture that is
 * built for, and is no part of the program.
 */
#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launch/filter.h"
#include "launch/filter_rules.h"

#define WORDS_MAX BPF_MAXINSNS

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "sallyport-filters: %s\n", what);
	exit(1);
}

static size_t compile(scmp_filter_ctx ctx, struct sock_filter *ret)
{
	int fd = memfd_create("bpf", MFD_CLOEXEC);
	ssize_t len;

	if (fd < 0 || seccomp_export_bpf(ctx, fd) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		fail("cannot write a program");
	len = read(fd, ret, WORDS_MAX * sizeof(*ret));
	if (len <= 0 || (size_t)len % sizeof(*ret) ||
	    (size_t)len == WORDS_MAX * sizeof(*ret))
		fail("a program is too long");
	close(fd);
	return (size_t)len / sizeof(*ret);
}

/* What everything rests on: calls of another architecture are not judged by
 * our numbers, and a process's own pid is written where filter_apply() looks
 * for it. */
static void check(const struct sock_filter *code, size_t n, size_t pids)
{
	size_t found = 0;

	if (n < 2 || code[0].code != (BPF_LD | BPF_W | BPF_ABS) ||
	    code[0].k != offsetof(struct seccomp_data, arch) ||
	    code[1].code != (BPF_JMP | BPF_JEQ | BPF_K) ||
	    code[1].k != seccomp_arch_native())
		fail("a program does not begin with the architecture");
	for (size_t i = 0; i < n; i++) {
		if (code[i].k != FILTER_PID)
			continue;
		if (code[i].code != (BPF_JMP | BPF_JEQ | BPF_K))
			fail("a pid is not compared");
		found++;
	}
	if (found != pids)
		fail("the pid is not where it should be");
}

static void print(FILE *out, const char *name, scmp_filter_ctx ctx, size_t pids)
{
	static struct sock_filter code[WORDS_MAX];
	size_t n = compile(ctx, code);

	check(code, n, pids);
	fprintf(out, "static const struct sock_filter filter_%s[] = {\n", name);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "\t{ 0x%02x, %u, %u, 0x%08x },\n", code[i].code,
			code[i].jt, code[i].jf, code[i].k);
	fputs("};\n", out);
	seccomp_release(ctx);
}

int main(int argc, char **argv)
{
	scmp_filter_ctx gate, ledger, sandbox, nest;
	FILE *out = argc == 2 ? fopen(argv[1], "we") : NULL;

	if (!out)
		fail("where to?");
	if (filter_write_child(ISOLATE_GATE, &gate) < 0 ||
	    filter_write_child(ISOLATE_LEDGER, &ledger) < 0 ||
	    filter_write_sandbox(false, &sandbox) < 0 ||
	    filter_write_sandbox(true, &nest) < 0)
		fail("libseccomp does not take a rule");
	fputs("/* Written by launch/filter_main.c. */\n", out);
	print(out, "gate", gate, 1);
	print(out, "ledger", ledger, 1);
	print(out, "sandbox", sandbox, 0);
	print(out, "nest", nest, 0);
	if (fclose(out) != 0)
		fail("cannot write");
	return 0;
}
