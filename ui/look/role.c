#include "config.h"

#include "ui/look/role.h"

#include <string.h>

static const char *const names[UI_ROLES] = {
    [ROLE_TEXT] = "text",
    [ROLE_DIM] = "dim",
    [ROLE_ACCENT] = "accent",
    [ROLE_BORDER] = "border",
    [ROLE_SELECTED] = "selected",
    [ROLE_USER] = "user",
    [ROLE_MODEL] = "model",
    [ROLE_THINKING] = "thinking",
    [ROLE_HEADING] = "heading",
    [ROLE_CODE] = "code",
    [ROLE_CODE_LABEL] = "code_label",
    [ROLE_CODE_KEYWORD] = "code_keyword",
    [ROLE_CODE_STRING] = "code_string",
    [ROLE_CODE_COMMENT] = "code_comment",
    [ROLE_CODE_NUMBER] = "code_number",
    [ROLE_LINK] = "link",
    [ROLE_QUOTE] = "quote",
    [ROLE_TABLE] = "table",
    [ROLE_RECEIPT] = "receipt",
    [ROLE_ODD] = "odd",
    [ROLE_GOOD] = "good",
    [ROLE_WARN] = "warn",
    [ROLE_BAD] = "bad",
    [ROLE_STATUS] = "status",
    [ROLE_STATUS_STRONG] = "status_strong",
    [ROLE_NOTICE] = "notice",
    [ROLE_PROMPT] = "prompt",
    [ROLE_INPUT] = "input",
    [ROLE_HINT] = "hint",
    [ROLE_MATCH] = "match",
    [ROLE_MATCH_NOW] = "match_now",
    [ROLE_GRAPH] = "graph",
    [ROLE_GRAPH_2] = "graph_2",
    [ROLE_LIMIT] = "limit",
    [ROLE_FILL_PROGRAM] = "fill_program",
    [ROLE_FILL_WORK] = "fill_work",
    [ROLE_FILL_RING] = "fill_ring",
    [ROLE_FILL_PINNED] = "fill_pinned",
    [ROLE_FILL_KV] = "fill_kv",
    [ROLE_FILL_LENT] = "fill_lent",
    [ROLE_FILL_OTHER] = "fill_other",
    [ROLE_FILL_FREE] = "fill_free",
    [ROLE_RAMP_0] = "ramp_0",
    [ROLE_RAMP_1] = "ramp_1",
    [ROLE_RAMP_2] = "ramp_2",
    [ROLE_RAMP_3] = "ramp_3",
    [ROLE_RAMP_4] = "ramp_4",
    [ROLE_RAMP_5] = "ramp_5",
    [ROLE_RAMP_6] = "ramp_6",
    [ROLE_RAMP_7] = "ramp_7",
};

int ui_role_parse(const char *name)
{
    for (int i = 0; i < UI_ROLES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *ui_role_name(enum ui_role role)
{
    return names[role];
}

enum ui_role ui_ramp(double share)
{
    int step = share > 0 ? (int)(share * UI_RAMP) : 0;

    return (enum ui_role)(ROLE_RAMP_0 + (step < UI_RAMP ? step : UI_RAMP - 1));
}
