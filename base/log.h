/* SPDX-License-Identifier: Apache-2.0
 *
 * log.h - what we tell the operator, on stderr. Not the audit log.
 *
 * Libraries do not log above debug: the caller that decides logs. Text that
 * came from a sandbox or a server must pass log_clean() first; the functions
 * here do so for every message, so that nothing forges a line.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

/* Sets what is shown (default: warn) and the word before each message, e.g.
 * "sallyport" or "sallyport gate". @name is kept, not copied. */
void log_init(const char *name, enum log_level level);

void log_err(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* log_err(), then exit(@status). Only before a loop starts. */
_Noreturn void die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
