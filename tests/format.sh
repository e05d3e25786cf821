#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-format decides how the code looks; nobody else needs to.
set -eu
cd "${1:-$(dirname "$0")/..}"
find base policy dns proxy firewall audit launch cmd tests \
	-name '*.c' -o -name '*.h' | xargs clang-format --dry-run -Werror
echo "format: as .clang-format says"
