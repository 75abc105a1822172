/*
 * explain.h - the meaning of every figure of the dashboard, for /help dashboard.
 */
#ifndef MEMWALL_UI_DASH_EXPLAIN_H
#define MEMWALL_UI_DASH_EXPLAIN_H

struct dash_note {
    const char *panel; /* the name of a widget */
    const char *figure, *meaning;
    const char *asks; /* other words of questions about it; or NULL */
};

/* All notes, those of a panel together; a NULL panel ends. */
const struct dash_note *dash_notes(void);

#endif
