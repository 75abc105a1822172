"""Find functions with external linkage that only tests call.

A function is declared in a header of engine, ui or src.  It is used if its name appears in the
program outside its declaration and its definition: in a .c file, or in an inline function or a
macro of a header.  tests/example counts as the program, since it is the documented use of
engine/memwall.h.
"""
import re

# name: the reason.  A name that is used or gone must be removed from the list.
ONLY_TESTS_CALL = {
    "jinja_data_used": "shows that a template stays within its memory",
    "mw_chat_is_busy": "for programs that poll instead of waiting for events",
    "mw_session_set_memory": "for programs with a session but no chat",
    "tool_calls_work": "shows that finding calls takes time in proportion to the answer",
    "transcript_bytes": "shows that the transcript stays within its memory",
    "transcript_peak_bytes": "as transcript_bytes",
}

# "int name(" at the start of a line, up to the semicolon of the declaration.
PROTOTYPE = re.compile(r"^(?!typedef\b|static\b|#|\s)[A-Za-z_][\w \t*]*[ \t*](\w+)\([^;{}]*\)"
                       r"[^;{}]*;", re.M)


def declared(headers):
    """Returns {name: header} of the functions that the headers (path: code) declare."""
    names = {}
    for path, code in headers.items():
        for m in PROTOTYPE.finditer(code):
            names.setdefault(m.group(1), path)
    return names


def unused(headers, sources):
    """Returns [(name, header)] of declared functions that neither headers nor sources use."""
    names = declared(headers)
    count = dict.fromkeys(names, 0)
    for code in sources.values():
        for word in re.findall(r"(?<![.>\w])[a-z]\w+", code):
            if word in count:
                count[word] += 1
    for code in headers.values():
        for word in re.findall(r"(?<![.>\w])[a-z]\w+", PROTOTYPE.sub("", code)):
            if word in count:
                count[word] += 1
    # The definition is the first appearance.
    return sorted((name, names[name]) for name in names if count[name] < 2)
