# SPDX-License-Identifier: Apache-2.0
"""Policies as an editor reads them: YAML 1.2's core schema (a date is a text,
"no" is a text, a key comes once), not the YAML 1.1 of PyYAML."""
import json
import os
import re

import jsonschema
import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
SCHEMA = os.path.join(TOP, "deploy", "policy.schema.json")


class Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is a word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"'{key.value}' is here twice",
                    key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _resolve(tag, pattern, first):
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag,
                                 re.compile(f"^(?:{pattern})$"), first)


_resolve("null", r"|~|null|Null|NULL", ["", "~", "n", "N"])
_resolve("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF"))
_resolve("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
         list("-+0123456789"))
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
         r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.0123456789"))


def _int(_, node):
    text = node.value
    return int(text, 0 if text[:2] in ("0o", "0x") else 10)


Loader.add_constructor("tag:yaml.org,2002:int", _int)


def schema():
    with open(SCHEMA, encoding="utf-8") as file:
        return json.load(file)


def validator():
    jsonschema.Draft7Validator.check_schema(schema())
    return jsonschema.Draft7Validator(schema())


def faults(check, text):
    """What an editor would underline in @text; an empty list if nothing."""
    try:
        value = yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError) as error:
        return [f"not YAML: {error}"]
    return [f"{'/'.join(str(p) for p in e.absolute_path) or 'top'}: "
            f"{e.message}" for e in check.iter_errors(value)]
