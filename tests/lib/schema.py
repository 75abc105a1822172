"""Check a JSON value against the part of JSON Schema that share/schemas uses."""
import json
import os

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$ref", "$defs", "title", "description", "type", "properties", "required", "enum", "const",
         "additionalProperties", "items", "minimum", "oneOf"}


def _is(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "schemas")


def errors(value, schema, where="$", root=None):
    """Yield a sentence for everything in the value that the schema forbids."""
    root = root or schema
    if "$ref" in schema:
        file, name = schema["$ref"].split("#/$defs/")
        if file:
            with open(os.path.join(FOLDER, file), encoding="utf-8") as f:
                root = json.load(f)
        schema = root["$defs"][name]
    if set(schema) - KNOWN:
        raise ValueError(f"{where}: the schema uses {set(schema) - KNOWN}")
    if "oneOf" in schema:
        found = [list(errors(value, part, where, root)) for part in schema["oneOf"]]
        if found.count([]) > 1:
            yield f"{where} matches more than one of oneOf"
        yield from min(found, key=len)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, t) for t in types):
        yield f"{where} is {value!r}, not {types}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{where} is {value!r}, not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r}, not one of {schema['enum']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{where} is {value}, less than {schema['minimum']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where} lacks {name}"
        more = schema.get("additionalProperties", True)
        for name, part in value.items():
            if name in schema.get("properties", {}):
                yield from errors(part, schema["properties"][name], f"{where}.{name}", root)
            elif more is False:
                yield f"{where} has {name}"
            elif more is not True:
                yield from errors(part, more, f"{where}.{name}", root)
    if isinstance(value, list) and "items" in schema:
        for i, part in enumerate(value):
            yield from errors(part, schema["items"], f"{where}[{i}]", root)


def closed(schema):
    """The same schema, with no members but those that it names."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {**more, **{name: closed(part) for name, part in schema.items()}}


def check(value, srcdir, name, is_closed=False):
    """Raise AssertionError unless the value is valid for share/schemas/NAME."""
    with open(os.path.join(srcdir, "share", "schemas", name), encoding="utf-8") as f:
        schema = json.load(f)
    wrong = list(errors(value, closed(schema) if is_closed else schema))
    assert not wrong, "\n".join(wrong)
