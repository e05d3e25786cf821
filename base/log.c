/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c - one write(2) a line, so that lines of our processes do not mix.
 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static const char *log_name = "sallyport";
static enum log_level log_max = LOG_LEVEL_WARN;

void log_init(const char *name, enum log_level level)
{
	log_name = name;
	log_max = level;
}

static void emit(enum log_level level, const char *fmt, va_list ap)
{
	static const char *const word[] = { "", "warning: ", "", "debug: " };
	char line[1024];
	int head, body;

	if (level > log_max)
		return;
	head = snprintf(line, sizeof(line) - 1, "%s: %s", log_name,
			word[level]);
	if (head < 0 || (size_t)head >= sizeof(line) - 1)
		return;
	body = vsnprintf(line + head, sizeof(line) - 1 - (size_t)head, fmt, ap);
	if (body < 0)
		return;
	size_t len = (size_t)head + (size_t)body;
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	for (size_t i = 0; i < len;) {
		bool bad;
		size_t n = text_next(line + i, &bad);

		if (bad && line[i] != '\n' && line[i] != '\t')
			memset(line + i, '?', n);
		i += n;
	}
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* nobody left to tell */
}

#define LOG_FUNCTION(name, level)       \
	void name(const char *fmt, ...) \
	{                               \
		va_list ap;             \
		va_start(ap, fmt);      \
		emit(level, fmt, ap);   \
		va_end(ap);             \
	}

LOG_FUNCTION(log_err, LOG_LEVEL_ERROR)
LOG_FUNCTION(log_warn, LOG_LEVEL_WARN)
LOG_FUNCTION(log_info, LOG_LEVEL_INFO)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG)

void die(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	emit(LOG_LEVEL_ERROR, fmt, ap);
	va_end(ap);
	exit(status);
}
