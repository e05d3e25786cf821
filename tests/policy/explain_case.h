/* SPDX-License-Identifier: Apache-2.0
 *
 * explain_case.h - a policy and a question to it.
 */
#ifndef TESTS_POLICY_EXPLAIN_CASE_H
#define TESTS_POLICY_EXPLAIN_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/explain.h"
#include "policy/explain_rule.h"
#include "tests/policy/build_helper.h"

#define NOW 1800000000 /* 2027-01-15T08:00:00Z */

#endif
