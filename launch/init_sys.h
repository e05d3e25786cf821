/* SPDX-License-Identifier: Apache-2.0
 *
 * init_sys.h - what init.c needs of a libc, for init.c only.
 *
 * A static glibc is 170 pages that each session writes, copies and reads again;
 * init needs two dozen system calls. Where no entry point is written below, the
 * libc does it all (SALLYPORT_INIT_LIBC).
 */
#ifndef LAUNCH_INIT_SYS_H
#define LAUNCH_INIT_SYS_H

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

static int init_main(int argc, char **argv, char **env);

#if defined(SALLYPORT_INIT_LIBC)
#include <unistd.h>

extern char **environ;

static inline long sys(long nr, long a, long b, long c, long d, long e)
{
	long r = syscall(nr, a, b, c, d, e);

	return r < 0 ? -errno : r;
}

int main(int argc, char **argv)
{
	return init_main(argc, argv, environ);
}

#else

#if defined(__x86_64__)
static inline long sys(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return r;
}

__asm__(".text\n"
	".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call init_begin\n"
	"	hlt\n");
#elif defined(__aarch64__)
static inline long sys(long nr, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}

__asm__(".text\n"
	".globl _start\n"
	"_start:\n"
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	mov x0, sp\n"
	"	bl init_begin\n"
	"	brk #0\n");
#endif

_Noreturn void init_begin(long *stack);

/* The kernel's stack: argc, the arguments, NULL, the environment, NULL. */
_Noreturn void init_begin(long *stack)
{
	int argc = (int)stack[0];
	char **argv = (char **)(stack + 1);
	int status = init_main(argc, argv, argv + argc + 1);

	for (;;)
		sys(SYS_exit_group, status, 0, 0, 0, 0);
}

/* The compiler may call these for an initialiser. */
void *memset(void *to, int byte, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n);

__attribute__((used)) void *memset(void *to, int byte, size_t n)
{
	volatile unsigned char *at = to;

	while (n--)
		*at++ = (unsigned char)byte;
	return to;
}

__attribute__((used)) void *memcpy(void *restrict to, const void *restrict from,
				   size_t n)
{
	volatile unsigned char *at = to;
	const unsigned char *in = from;

	while (n--)
		*at++ = *in++;
	return to;
}
#endif

#endif
