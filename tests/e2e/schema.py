# SPDX-License-Identifier: Apache-2.0
"""Checks values against the JSON schemas of docs/."""

import functools
import json
import os

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


@functools.cache
def load(name):
    """The schema in docs/NAME."""
    with open(os.path.join(DOCS, name)) as file:
        return json.load(file)


def violations(value, name, where=None):
    """What is wrong with a value by the schema in docs/NAME; an empty list if nothing is."""
    where = where or os.path.basename(name).partition(".")[0]
    return check(value, load(name), name, where)


def check(value, schema, name, where):
    """The part of JSON Schema that ours use. `name` is of the file that `schema` stands in."""
    if "$ref" in schema:
        file, _, pointer = schema["$ref"].partition("#/")
        if file:
            name = os.path.join(os.path.dirname(name), file)
        target = load(name)
        for part in pointer.split("/"):
            target = target[part]
        return check(value, target, name, where)
    if "anyOf" in schema:
        found = [check(value, one, name, where) for one in schema["anyOf"]]
        # Of all that do not fit, what is wrong with the last: the first is often null.
        return [] if any(not one for one in found) else found[-1]
    kind = NAMES[type(value)]
    allowed = schema.get("type", [])
    allowed = [allowed] if isinstance(allowed, str) else allowed
    if allowed and kind not in allowed and not (kind == "integer" and "number" in allowed):
        return [f"{where}: {kind} instead of {allowed}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is not one of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r} is not {schema['const']!r}")
    if kind == "object":
        properties = schema.get("properties", {})
        found += [f"{where}: no {key}" for key in schema.get("required", []) if key not in value]
        if schema.get("additionalProperties") is False:
            found += [f"{where}: unknown {key}" for key in value if key not in properties]
        for key in value.keys() & properties.keys():
            found += check(value[key], properties[key], name, f"{where}.{key}")
    if kind == "array" and "items" in schema:
        for number, item in enumerate(value):
            found += check(item, schema["items"], name, f"{where}[{number}]")
    return found
